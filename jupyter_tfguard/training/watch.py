"""One fit as it goes: the Keras callback that rides along, and what turns its calls into counters and events.

The callback is a subclass made from the user's own Keras, version 2 or 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from ..shield import is_users, note_problem, shield, shielded
from .checkpoints import CheckpointWatch
from .describe import parameter_count
from .progress import FitProgress, ProgressBoard, plain_logs

Emit = Callable[..., None]
_LOOK_SECONDS = 1.0
_PLACE = "tracking a fit"


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
        self._looked = monotonic()
        self._epoch_began = monotonic()
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
        self._epoch_began = monotonic()

    def look(self, batch: int) -> None:
        """What is done at the beginning of some steps: from the moment that ``progress.look_due`` says on."""
        if not self._complete and batch:
            self._tell_what_is_new({})
        if monotonic() - self._looked >= _LOOK_SECONDS:
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
            seconds=round(monotonic() - self._epoch_began, 6),
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
        self._looked = monotonic()
        with shielded("searching for checkpoints"):
            for found in self._checkpoints.look():
                self._emit("checkpoint", **found)


def make_callback_class(base: Any) -> Any:
    """A subclass of ``keras.callbacks.Callback`` that tells a :class:`FitWatch` how far the fit is.

    It takes part in no decision of Keras': it never asks for logs as numbers, which would wait for each step (Keras 2,
    ``_supports_tf_logs``), and it may be called from Keras' own threads (Keras 3, ``async_safe``).
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
            # At every step, so without the calls that decorator and watch would cost.
            try:
                progress = self._progress
                progress.step = batch + 1
                if monotonic() >= progress.look_due:
                    self._watch.look(batch)
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

        # Within a fit these tell of its validation, which is no step of ours.
        @follow
        def on_test_begin(self, logs: Any = None) -> None:
            if self._what == "evaluate":
                self._watch.begins(self.params)

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
            if self._what == "evaluate":
                self.on_train_batch_begin(batch)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            if self._what == "evaluate":
                self.on_train_batch_end(batch, logs)

        @follow
        def on_predict_begin(self, logs: Any = None) -> None:
            self._watch.begins(self.params)

        def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.on_train_batch_begin(batch)

        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            self._progress.finished_step = batch + 1

    if not keeps_logs:
        # Keras 2 times the callbacks that do not bear the name of one of its own, and warns of slow ones.
        TfGuardProgress.__name__ = base.__name__
    return TfGuardProgress


def _hands_out_tensors(base: Any) -> bool:
    """Keras 2 gives a callback like ours the logs of a step as tensors, unfinished."""
    return hasattr(base(), "_supports_tf_logs")
