"""Compares the estimate of a fit with the memory that the fit then needed."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from ..collectors.resident import anonymous_peak_bytes, status_bytes
from ..errors import SourceUnavailable
from ..units import human_bytes

if TYPE_CHECKING:
    from .answer import Answer

_answers: weakref.WeakKeyDictionary[Any, Answer] = weakref.WeakKeyDictionary()
_compared: weakref.WeakKeyDictionary[Any, Compared] = weakref.WeakKeyDictionary()


class Compared(NamedTuple):
    """An estimate, and what a fit of the same model and batch size needed."""

    batch_size: int
    estimated_bytes: int
    needed_bytes: int

    def text(self) -> str:
        """The comparison in a sentence."""
        error = self.estimated_bytes / self.needed_bytes - 1
        side = "too much" if error > 0 else "too little"
        return (
            f"The last fit with batch_size={self.batch_size} needed {human_bytes(self.needed_bytes)}; "
            f"its estimate was {human_bytes(self.estimated_bytes)}, {abs(error):.0%} {side}."
        )


def remember(model: Any, answer: Answer) -> None:
    """Keep the last estimate of a model as long as the model lives."""
    if answer.best_bytes is not None:
        _answers[model] = answer


def last_comparison(model: Any) -> Compared | None:
    """What the last fit that had been estimated needed; None without one."""
    return _compared.get(model)


class FitMeter:
    """Measures one fit whose memory was estimated.

    The need is the peak of anonymous memory minus that before the fit. It is unknown if the process had needed more before.
    """

    def __init__(self) -> None:
        self._before = status_bytes(os.getpid(), "VmHWM", "RssAnon")

    @classmethod
    def of(cls, model: Any, batch_size: int | None) -> FitMeter | None:
        """The meter for a fit that begins; None if it was not estimated or cannot be measured."""
        answer = _answers.get(model)
        if answer is None or answer.batch_size != batch_size:
            return None
        try:
            return cls()
        except SourceUnavailable:
            return None

    def ends(self, model: Any) -> Compared | None:
        """The comparison, which is kept for :func:`last_comparison`; None if the need is unknown."""
        answer, pid = _answers.get(model), os.getpid()
        highest = status_bytes(pid, "VmHWM")["VmHWM"]
        if answer is None or answer.best_bytes is None or highest <= self._before["VmHWM"]:
            return None
        needed = anonymous_peak_bytes(pid) - self._before["RssAnon"]
        if needed <= 0:
            return None
        _compared[model] = found = Compared(answer.batch_size, answer.best_bytes, needed)
        return found
