"""What is kept of the last estimate of a model: its batch size is named again, and its need compared with that of the fit."""

from __future__ import annotations

import os
import weakref
from typing import Any, NamedTuple

from ..collectors.resident import anonymous_peak_bytes, status_bytes
from ..errors import SourceUnavailable
from ..training.plan import FitPlan
from ..units import human_bytes
from .answer import Answer
from .bound.bound import Bound
from .own_memory import reusable_bytes
from .traced.quick import QuickPrediction

# Smaller needs are not compared: two runs of the same fit differ by as much.
_LEAST_BYTES = 16 << 20
_DOUBLE = 2.0
_SAME_SHARE = 0.25


class _Estimated(NamedTuple):
    answer: Answer
    fit: tuple[Any, ...]


class _Named(NamedTuple):
    fit: tuple[Any, ...]
    available_bytes: int
    size: int | None


_named: weakref.WeakKeyDictionary[Any, _Named] = weakref.WeakKeyDictionary()
_estimated: weakref.WeakKeyDictionary[Any, _Estimated] = weakref.WeakKeyDictionary()
_compared: weakref.WeakKeyDictionary[Any, Compared] = weakref.WeakKeyDictionary()
_fitted: weakref.WeakSet[Any] = weakref.WeakSet()


class Compared(NamedTuple):
    """An estimate, and what a fit of the same model and batch size needed."""

    batch_size: int
    estimated_bytes: int
    needed_bytes: int

    def text(self) -> str:
        """The comparison in a sentence."""
        ratio = self.estimated_bytes / self.needed_bytes
        side = "too much" if ratio > 1 else "too little"
        error = f"{abs(ratio - 1):.0%} {side}"
        if ratio >= _DOUBLE:
            error = f"{ratio:.1f} times as much"
        return (
            f"The estimated fit with a batch of {self.batch_size} needed {human_bytes(self.needed_bytes)}; "
            f"its estimate was {human_bytes(self.estimated_bytes)}, {error}."
        )


def remember(model: Any, plan: FitPlan, answer: Answer) -> None:
    """Keep the last estimate of a model until its next fit.

    A model that was fitted before leaves memory free that its next fit uses again, so that fit shows no need.
    """
    if answer.best_bytes is not None and model not in _fitted:
        _estimated[model] = _Estimated(answer, plan.identity())


def named_batch(
    model: Any,
    plan: FitPlan,
    known: Bound | QuickPrediction,
    available_bytes: int,
    sample_count: int | None,
) -> int | None:
    """The batch to name for a fit: what was named for the same fit before, if about as much memory is available.

    The available memory changes a little from cell to cell, and with it a rounded size.
    """
    fit, before = plan.identity(), _named.get(model)
    if before is not None and before.fit == fit:
        difference = abs(available_bytes - before.available_bytes)
        if difference <= _SAME_SHARE * available_bytes:
            return before.size
    size = known.fitting_batch(available_bytes, sample_count)
    _named[model] = _Named(fit, available_bytes, size)
    return size


def last_comparison(model: Any) -> Compared | None:
    """What the last fit that had been estimated needed; None without one."""
    return _compared.get(model)


class FitMeter:
    """Measures one fit whose memory was estimated.

    The need is the peak of anonymous memory minus that before the fit. It is unknown if the process had needed more before.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._before = status_bytes(os.getpid(), "VmHWM", "RssAnon")

    @classmethod
    def of(cls, model: Any, plan: FitPlan) -> FitMeter | None:
        """The meter for a fit that begins; None if it is not the fit that was estimated, or cannot be measured.

        Only the first fit after an estimate is compared.
        """
        _fitted.add(model)
        estimated = _estimated.pop(model, None)
        if estimated is None or estimated.fit != plan.identity():
            return None
        # A fit uses the free memory of this process first: what it used of that cannot be seen.
        if reusable_bytes() > (estimated.answer.best_bytes or 0):
            return None
        try:
            return cls(estimated.answer)
        except SourceUnavailable:
            return None

    def ends(self, model: Any) -> Compared | None:
        """The comparison, which is kept for :func:`last_comparison`; None if the need is unknown."""
        pid, estimated = os.getpid(), self._answer.best_bytes
        highest = status_bytes(pid, "VmHWM")["VmHWM"]
        if estimated is None or highest <= self._before["VmHWM"]:
            return None
        needed = anonymous_peak_bytes(pid) - self._before["RssAnon"]
        if needed < _LEAST_BYTES:
            return None
        _compared[model] = found = Compared(self._answer.batch_size, estimated, needed)
        return found
