"""One fit as it goes: turns what Keras tells into counters and events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..shield import shielded
from .checkpoints import CheckpointWatch
from .describe import parameter_count
from .progress import FitProgress, ProgressBoard, plain_logs

Emit = Callable[..., None]
_LOOK_SECONDS = 1.0


class FitWatch:
    """Watches one run of ``fit``, ``evaluate`` or ``predict``.

    Args:
        progress: Its counters.
        board: Where they are shown.
        emit: Called with the kind of an event and its fields.
        model: Looked at until it is built.
        checkpoints: Of this run.
    """

    def __init__(
        self,
        progress: FitProgress,
        board: ProgressBoard,
        emit: Emit,
        model: Any,
        checkpoints: CheckpointWatch,
    ) -> None:
        self.progress = progress
        self._board = board
        self._emit = emit
        self._model: Any = model
        self._checkpoints = checkpoints
        self._looked = time.monotonic()
        self._epoch_began = time.monotonic()
        # The parameters of some models are known only after their first step.
        self._complete = progress.parameter_count is not None

    def begins(self, params: Mapping[str, Any] | None) -> None:
        """Keras is about to make the first step; `params` are those of its callbacks."""
        progress = self.progress
        steps, epochs = (params or {}).get("steps"), (params or {}).get("epochs")
        new = {}
        if progress.steps is None and isinstance(steps, int):
            progress.steps = new["steps"] = steps
        if progress.what == "fit" and isinstance(epochs, int) and epochs != progress.epochs:
            progress.epochs = new["epochs"] = epochs
        self._tell_what_is_new(new)

    def _tell_what_is_new(self, new: dict[str, Any]) -> None:
        if not self._complete:
            count = parameter_count(self._model)
            if count is not None:
                self.progress.parameter_count = new["parameter_count"] = count
                self._complete = True
        if new:
            self._emit("fit_ready", fit_id=self.progress.fit_id, **new)

    def epoch_begins(self, epoch: int) -> None:
        """`epoch`: as Keras counts, from 0."""
        progress = self.progress
        progress.epoch = int(epoch) + 1
        progress.earlier_steps, progress.step = progress.steps_begun, None
        progress.finished_step = None
        self._epoch_began = time.monotonic()

    def look(self, batch: int) -> None:
        """What is done at the beginning of some steps: from the moment that ``progress.look_due`` says on."""
        if not self._complete and batch:
            self._tell_what_is_new({})
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self.look_for_checkpoint()
        self._board.look(self.progress)

    def epoch_ends(self, epoch: int, logs: Any) -> None:
        """Keep the epoch's logs, and look whether a checkpoint was written."""
        progress = self.progress
        progress.logs = plain_logs(logs)
        self._all_steps_end()
        self._emit(
            "epoch_end",
            fit_id=progress.fit_id,
            epoch=int(epoch) + 1,
            logs=dict(progress.logs),
            seconds=round(time.monotonic() - self._epoch_began, 6),
        )
        self.look_for_checkpoint()

    def _all_steps_end(self) -> None:
        # How many steps an epoch of a generator has shows only at the end of the first.
        is_new = self.progress.all_steps_end()
        self._tell_what_is_new({"steps": self.progress.steps} if is_new else {})

    def ends(self, error: BaseException | None) -> None:
        """The run is over."""
        self.look_for_checkpoint()
        if error is None:
            self._all_steps_end()
        else:
            self._tell_what_is_new({})
        self._model = None  # not to be kept alive by us
        self._board.end(self.progress)
        self._emit(
            "fit_end",
            fit_id=self.progress.fit_id,
            ok=error is None,
            error=None if error is None else type(error).__name__,
        )

    def look_for_checkpoint(self) -> None:
        """Emit the checkpoints that were written since the last look. Keras has saved in this thread, so they are complete."""
        self._looked = time.monotonic()
        with shielded("looking for checkpoints"):
            for found in self._checkpoints.look():
                self._emit("checkpoint", **found)
