"""The progress of a fit: counters in memory, written to disk often enough to survive a crash.

A step must stay cheap, so it only stores a number. The file is written at the beginning of a step if the last write was
50 ms ago (so a slow step is on disk before it starts), and by the sampling thread while a step runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..batch_place import IN_ARGUMENT, BatchPlace
from ..kept_data import Kept
from ..record.events import LOOP

WRITE_SECONDS = 0.05
_RATE_SECONDS = 2.0
_LOGS_LIMIT = 12
_NAME_LIMIT = 40


@dataclass(slots=True)
class FitProgress:
    """One ``fit``, ``evaluate`` or ``predict``, or a training loop. Epoch and step are 1-based; `step` is the running step.

    Attributes:
        what: The method, or :data:`~..record.facts.LOOP`. The steps of a loop are the updates of its optimizer, of all
            cells; None if they cannot be read.
        finished_step: The last step of this epoch that ended, as counted by Keras. It begins one more if data of unknown
            length ends, and several at once with ``steps_per_execution``; their count may go beyond the end.
        batch_place: Where its batch size is set.
        validation_step: The running step of the validation in a fit; 0 before its first, None while there is no validation.
        logs: The logs of the last step, as passed by Keras.
        earlier_steps: Steps of the epochs before this one.
        poll_due: Monotonic seconds; a step that begins after this calls :meth:`ProgressBoard.poll`.
        callbacks: The user's callbacks, during the run.
        data: Its model, data and validation data, during the run.
        kept_data: What its data pipelines keep in memory.
        refused: Why it was not started; None for a run that was.
        compared: The memory that the run needed, as text, if it had been estimated.
    """

    fit_id: int
    what: str
    model_name: str | None = None
    parameter_count: int | None = None
    optimizer: str | None = None
    batch_size: int | None = None
    batch_place: BatchPlace = IN_ARGUMENT
    epochs: int | None = None
    steps: int | None = None
    epoch: int | None = None
    step: int | None = None
    finished_step: int | None = None
    validation_step: int | None = None
    logs: Any = None
    active: bool = True
    started: float = field(default_factory=time.time)
    ended: float | None = None
    earlier_steps: int = 0
    poll_due: float = 0.0
    callbacks: tuple[Any, ...] = ()
    data: tuple[Any, ...] = ()
    kept_data: Sequence[Kept] = ()
    refused: str | None = None
    compared: str | None = None
    _anchor: tuple[float, int] | None = None
    _next_anchor: tuple[float, int] | None = None
    _rate_then: float | None = None

    @property
    def steps_begun(self) -> int:
        """Steps of all epochs so far, the running one included."""
        return self.earlier_steps + (self.step or 0)

    @property
    def completed_step(self) -> int | None:
        """The last step of this epoch that ended, not beyond the last one; None before the first."""
        if self.finished_step is None or self.steps is None:
            return self.finished_step
        return min(self.finished_step, self.steps)

    @property
    def in_step(self) -> bool | None:
        """True before the first step, and while one of training or validation runs; None for a loop: not known."""
        if self.is_loop:
            return None
        if self.validation_step is not None or self.steps_begun == 0:
            return True
        return self.step is not None and not self.is_between_steps

    @property
    def is_between_steps(self) -> bool:
        """True if the last step of training has ended, and the next has not begun; never for a loop."""
        ended = self.step is not None and (self.finished_step or 0) >= self.step
        return ended and not self.is_loop

    @property
    def place(self) -> tuple[int, int | None, bool | None]:
        """Changes when a step begins or ends."""
        return self.steps_begun, self.validation_step, self.in_step

    @property
    def is_loop(self) -> bool:
        """True for a training loop: Keras does not run it."""
        return self.what == LOOP

    def all_steps_end(self) -> bool:
        """Note the end of the epoch or run; True if this determines the number of steps."""
        if self.finished_step is not None:
            self.step = self.completed_step
        if self.steps is not None or not self.step:
            return False
        self.steps = self.step
        return True

    def record(self, now: float) -> dict[str, Any]:
        """The progress record for the recording. `now`: monotonic seconds."""
        return {
            "fit_id": self.fit_id,
            "what": self.what,
            "active": self.active,
            "refused": self.refused is not None,
            "model_name": None if self.model_name is None else self.model_name[:_NAME_LIMIT],
            "parameter_count": self.parameter_count,
            "optimizer": None if self.optimizer is None else self.optimizer[:_NAME_LIMIT],
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            "epoch": self.epoch,
            "steps": self.steps,
            "step": self.step,
            "steps_begun": self.steps_begun,
            "validation_step": self.validation_step,
            "in_step": self.in_step,
            "steps_per_second": self._rate(now),
            "logs": plain_logs(self.logs),
            "started": self.started,
            "ended": self.ended,
            "time": time.time(),
        }

    def _rate(self, now: float) -> float | None:
        """Steps per second over the last two to four seconds; None before the first step has ended."""
        if self.is_between_steps:
            return self._rate_then  # measured from beginning to beginning
        done = max(0, self.steps_begun - 1)
        if self._anchor is None or self._next_anchor is None:
            if done:  # the first step compiles the model, so count from its end
                self._anchor = self._next_anchor = (now, done)
            return None
        if now - self._next_anchor[0] > _RATE_SECONDS and done > self._next_anchor[1]:
            self._anchor, self._next_anchor = self._next_anchor, (now, done)
        began, done_then = self._anchor
        if done == done_then or now == began:
            return None
        self._rate_then = round((done - done_then) / (now - began), 4)
        return self._rate_then


class ProgressBoard:
    """Writes the progress of the newest fit, or of a loop while it runs no fit.

    Fits begin and end in the threads that run them, loops in others, so each kind has its own place.

    Attributes:
        fit_count: Number of calls of ``fit`` so far.

    Args:
        write: Stores one record; called by one thread at a time.
    """

    def __init__(self, write: Callable[[dict[str, Any]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._fit: FitProgress | None = None
        self._loop: FitProgress | None = None
        self.fit_count = 0
        self._written = 0.0
        self._written_place: object = None
        self._open = True

    @property
    def current(self) -> FitProgress | None:
        """What runs, or the newest that ended; None if there was none. ``evaluate`` in a loop comes before the loop."""
        fit, loop = self._fit, self._loop
        if fit is None or loop is None:
            return fit or loop
        if fit.active or loop.active:
            return fit if fit.active else loop
        return fit if (fit.ended or 0.0) >= (loop.ended or 0.0) else loop

    @property
    def runs_fit(self) -> bool:
        """True while ``fit`` runs."""
        fit = self._fit
        return fit is not None and fit.active and fit.what == "fit"

    def begin(self, progress: FitProgress) -> None:
        """Make this the current fit or loop."""
        if progress.is_loop:
            self._loop = progress
        else:
            self._fit = progress
            self.fit_count += progress.what == "fit"
        self._write_now()

    def end(self, progress: FitProgress) -> None:
        """Write how the fit or loop ended."""
        progress.active = False
        progress.callbacks = progress.data = ()  # releases the user's objects
        progress.ended = time.time()
        self._write_now()

    def poll(self, progress: FitProgress) -> None:
        """Write the progress; called at the beginning of a step once ``poll_due`` has passed."""
        if self.current is progress:
            self._write_now()

    def flush(self) -> None:
        """Write if a step has begun or ended since the last write, 50 ms ago or more; called by the sampling thread."""
        current = self.current
        if (
            current is not None
            and current.active
            and current.place != self._written_place
            and time.monotonic() - self._written >= WRITE_SECONDS
        ):
            self._write_now()

    def close(self) -> None:
        """Stop writing."""
        self._open = False

    def _write_now(self) -> None:
        current = self.current
        # The other thread is already writing the same numbers: do not wait for it.
        if current is None or not self._open or not self._lock.acquire(blocking=not current.active):
            return
        try:
            now = time.monotonic()
            self._written, self._written_place = now, current.place
            if not current.is_between_steps:  # else the next step would be written late
                current.poll_due = now + WRITE_SECONDS
            self._write(current.record(now))
        finally:
            self._lock.release()


def plain_logs(logs: Any) -> dict[str, float]:
    """Keras' logs as floats, at most twelve; values that are not numbers are left out.

    TensorFlow tensors are left out as well: reading one from a device would wait for the step.
    """
    found: dict[str, float] = {}
    if not isinstance(logs, dict):
        return found
    for name, value in list(logs.items())[:_LOGS_LIMIT]:
        if isinstance(value, (int, float)) or type(value).__module__ == "numpy":
            try:
                found[str(name)[:_NAME_LIMIT]] = float(value)
            except (TypeError, ValueError):
                continue  # a metric with several values
    return found
