"""Whether a loop builds a new model for each fit, from what the journal has of each fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..record.events import FitStart

OWN_PROCESS = "Run each fit in its own process, or build the model once and reset its weights."
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class FittedModels:
    """The models of several fits.

    Attributes:
        count: Different ones.
        fit_count: Fits.
        alive_count: Those that still existed at the last fit; None if unknown.
        is_session_cleared: ``clear_session()`` was called between them.
        is_xla: XLA compiled them.
    """

    count: int
    fit_count: int
    alive_count: int | None = None
    is_session_cleared: bool = False
    is_xla: bool = False

    @classmethod
    def of(cls, starts: Sequence[FitStart]) -> FittedModels | None:
        """From the starts of the fits, oldest first; None if these do not name their models."""
        numbers = {one.model_number for one in starts if one.model_number}
        if not numbers:
            return None
        return cls(
            len(numbers),
            len(starts),
            starts[-1].models_alive,
            any(one.session_cleared for one in starts[1:]),
            bool(starts[-1].jit_compile),
        )

    @property
    def are_built_in_a_loop(self) -> bool:
        """True if most fits are of a model of their own; a tuner may fit each one twice."""
        return self.count >= _FEWEST and 2 * self.count >= self.fit_count

    @property
    def text(self) -> str:
        """What the loop does, and what keeps the memory."""
        found = f"{self.fit_count} fits were of {self.count} different models."
        if self.alive_count is not None and 2 * self.alive_count >= self.count > _FEWEST:
            found += f" {self.alive_count} of the models still exist: something refers to them, such as a list, or the History that fit() returns."
        else:
            found += " TensorFlow keeps a part of each model, also when the model is gone."
        if self.is_session_cleared:
            found += " clear_session() is called already, and does not free this."
        if self.is_xla:
            found += " With jit_compile=True each model also leaves the program that XLA compiled for it: jit_compile=False saves that."
        return found
