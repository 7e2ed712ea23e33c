"""The Keras callback that rides along in a fit: a subclass made from the user's own Keras, version 2 or 3."""

from __future__ import annotations

from time import monotonic
from typing import Any

from ..shield import is_users, note_problem, shield
from .watch import FitWatch

_PLACE = "following a fit"


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
