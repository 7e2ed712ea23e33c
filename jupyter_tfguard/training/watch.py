"""Observes one fit: a Keras callback, and the object that turns its calls into counters and events.

The callback is a subclass of the user's Keras callback class, version 2 or 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

from ..record.events import Emit, EpochEnd, FitEnd, FitReady
from ..shield import is_users, note_problem, shield, shielded
from .checkpoints import CheckpointWatch
from .models import parameter_count
from .progress import FitProgress, ProgressBoard, plain_logs

_CHECKPOINT_SECONDS = 1.0
_PLACE = "tracking a fit"


class FitWatch:
    """Observes one run of ``fit``, ``evaluate`` or ``predict``.

    Args:
        progress: The counters of the run.
        board: Writes the progress.
        emit: Writes an event to the journal.
        model: Checked until it is built.
        checkpoints: Finds the checkpoints of this run.
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
        self._checked_at = monotonic()
        self._epoch_began = monotonic()
        # Some models are built only during their first step.
        self._complete = progress.parameter_count is not None

    def begins(self, params: Mapping[str, Any] | None) -> None:
        """Called before the first step. `params`: the attribute that Keras sets on callbacks."""
        progress = self.progress
        steps, epochs = (params or {}).get("steps"), (params or {}).get("epochs")
        new = {}
        if progress.steps is None and isinstance(steps, int):
            progress.steps = new["steps"] = steps
        if progress.what == "fit" and isinstance(epochs, int) and epochs != progress.epochs:
            progress.epochs = new["epochs"] = epochs
        self._emit_news(new)

    def _emit_news(self, new: dict[str, Any]) -> None:
        if not self._complete:
            count = parameter_count(self._model)
            if count is not None:
                self.progress.parameter_count = new["parameter_count"] = count
                self._complete = True
        if new:
            self._emit(FitReady(fit_id=self.progress.fit_id, **new))

    def epoch_begins(self, epoch: int) -> None:
        """Called at the start of an epoch. `epoch`: counted from 0, as in Keras."""
        progress = self.progress
        progress.epoch = int(epoch) + 1
        progress.earlier_steps, progress.step = progress.steps_begun, None
        progress.finished_step = None
        self._epoch_began = monotonic()

    def poll(self, batch: int) -> None:
        """Called at the beginning of a step once ``progress.poll_due`` has passed."""
        if not self._complete and batch:
            self._emit_news({})
        if monotonic() - self._checked_at >= _CHECKPOINT_SECONDS:
            self.find_checkpoint()
        self._board.poll(self.progress)

    def epoch_ends(self, epoch: int, logs: Any) -> None:
        """Record the epoch's logs, and check for new checkpoints."""
        progress = self.progress
        progress.logs = plain_logs(logs)
        self._all_steps_end()
        seconds = round(monotonic() - self._epoch_began, 6)
        logs = dict(progress.logs)
        self._emit(
            EpochEnd(fit_id=progress.fit_id, epoch=int(epoch) + 1, logs=logs, seconds=seconds)
        )
        self.find_checkpoint()

    def _all_steps_end(self) -> None:
        # For a generator the number of steps is known only at the end of the first epoch.
        is_new = self.progress.all_steps_end()
        self._emit_news({"steps": self.progress.steps} if is_new else {})

    def ends(self, error: BaseException | None) -> None:
        """Record the end of the run."""
        self.find_checkpoint()
        if error is None:
            self._all_steps_end()
        else:
            self._emit_news({})
        self._model = None  # releases the user's model
        self._board.end(self.progress)
        self._emit(FitEnd.of(self.progress.fit_id, error))

    def find_checkpoint(self) -> None:
        """Emit the checkpoints written since the last check. Keras saves in this thread, so they are complete."""
        self._checked_at = monotonic()
        with shielded("searching for checkpoints"):
            for found in self._checkpoints.poll():
                self._emit(found)


def make_callback_class(base: Any) -> Any:
    """A subclass of ``keras.callbacks.Callback`` that reports progress to a :class:`FitWatch`.

    It does not influence Keras: it never requests logs as numbers, which would wait for each step (Keras 2,
    ``_supports_tf_logs``), and Keras may call it from its own threads (Keras 3, ``async_safe``).
    """
    follow = shield(_PLACE)
    keeps_logs = not _hands_out_tensors(base)

    class TfGuardProgress(base):  # type: ignore[misc]
        """Follows the progress of one fit for jupyter-tfguard."""

        async_safe = True

        def __init__(self, watch: FitWatch) -> None:
            super().__init__()
            self._supports_tf_logs = True
            self._watch = watch
            self._progress = watch.progress
            self._what = watch.progress.what

        @follow
        def on_train_begin(self, logs: Any = None) -> None:
            self._watch.begins(self.params)

        @follow
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._watch.epoch_begins(epoch)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            # Runs at every step, so it avoids the calls of the decorator and of the watch.
            try:
                progress = self._progress
                progress.step = batch + 1
                if monotonic() >= progress.poll_due:
                    self._watch.poll(batch)
            except Exception as error:
                if is_users(error):
                    raise
                note_problem(_PLACE, error)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self._progress.finished_step = batch + 1
            if keeps_logs:
                self._progress.logs = logs

        @follow
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self._watch.epoch_ends(epoch, logs)

        # During a fit these are called for its validation, whose steps are counted apart.
        @follow
        def on_test_begin(self, logs: Any = None) -> None:
            if self._what == "evaluate":
                self._watch.begins(self.params)
            else:
                self._progress.validation_step = 0

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
            if self._what == "evaluate":
                self.on_train_batch_begin(batch)
            else:
                self._progress.validation_step = batch + 1

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            if self._what == "evaluate":
                self.on_train_batch_end(batch, logs)

        def on_test_end(self, logs: Any = None) -> None:
            self._progress.validation_step = None

        @follow
        def on_predict_begin(self, logs: Any = None) -> None:
            self._watch.begins(self.params)

        def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.on_train_batch_begin(batch)

        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            self._progress.finished_step = batch + 1

    if not keeps_logs:
        # Keras 2 measures callbacks whose class name is not one of its own, and warns about slow ones.
        TfGuardProgress.__name__ = base.__name__
    return TfGuardProgress


def _hands_out_tensors(base: Any) -> bool:
    """True for Keras 2, which passes a step's logs to such a callback as tensors, not yet computed."""
    return hasattr(base(), "_supports_tf_logs")
