"""The last checkpoint that a callback wrote, and code that resumes from it. Uses only the journal; nothing is guessed."""

from __future__ import annotations

import os.path
from dataclasses import dataclass

from ..decode import dict_of, number_of
from ..record.events import LOOP, CheckpointWritten, EpochEnd, FitReady, FitStart
from ..redact import REDACTED
from .evidence import Evidence

_BACKUP = "BackupAndRestore"
_OURS = "tfguard"  # the guard itself, when it stopped a fit
# File systems take timestamps from a clock that advances once per millisecond at most.
_SAME_SECONDS = 0.0005
_LATER_SECONDS = 5.0


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint. Unknown is None.

    Attributes:
        path: Path of the file, or of the folder of a saved model.
        written: Unix seconds.
        by: The callback that wrote it, ``ModelCheckpoint`` or ``BackupAndRestore``, or ``tfguard`` for that of a stop.
        weights_only: True if it contains only the weights, so that code must build the model.
        epoch: Number of epochs that were finished when it was observed.
        epochs: Number of epochs that the fit was started with.
        in_loop: It is of a training loop, not of a fit.
    """

    path: str
    written: float | None
    by: str | None
    weights_only: bool | None
    epoch: int | None
    epochs: int | None
    in_loop: bool = False


def last_checkpoint(seen: Evidence) -> Checkpoint | None:
    """The newest checkpoint; None when the journal records none."""
    found: Checkpoint | None = None
    epoch: int | None = None
    epochs: int | None = None
    for event in seen.journal:
        if isinstance(event, FitStart):
            epoch, epochs = None, event.epochs
        elif isinstance(event, FitReady):
            epochs = event.epochs or epochs
        elif isinstance(event, EpochEnd):
            epoch = event.epoch
        elif isinstance(event, CheckpointWritten) and event.path:
            found = Checkpoint(
                event.path,
                event.written,
                event.by,
                _weights_only(event),
                epoch,
                epochs,
                event.what == LOOP,
            )
    return found


def doubt(seen: Evidence, checkpoint: Checkpoint) -> str | None:
    """Why the file may have changed since it was observed complete; None when nothing suggests that."""
    observed = seen.bundle.get("checkpoint_file")
    if not isinstance(observed, dict) or checkpoint.written is None:
        return None
    if observed.get("modified") is None:
        return "The file was not found after the kernel ended."
    modified = number_of(observed["modified"])
    if modified is None or modified <= checkpoint.written + _SAME_SECONDS:
        return None
    if modified > seen.died + _LATER_SECONDS:
        return "The file was written again after the kernel ended. It may belong to another run."
    return "The file was being written again just before the kernel ended, and may be incomplete. Check that it loads."


def _weights_only(event: CheckpointWritten) -> bool | None:
    """The file name takes precedence: Keras 3 uses a different suffix for each kind."""
    path = event.path or ""
    if path.endswith((".weights.h5", ".keras")):
        return path.endswith(".h5")
    return event.weights_only


def resume_code(seen: Evidence, checkpoint: Checkpoint) -> str | None:
    """A few lines of Python that resume from it; None when the contents of the file are not known.

    ``...`` replaces the unchanged arguments of the fit.
    """
    if REDACTED in checkpoint.path:
        return None
    keras, first = _keras(seen)
    if checkpoint.by == _BACKUP:
        folder = os.path.dirname(checkpoint.path)
        fit = _fit(None, checkpoint.epochs, f"callbacks=[{keras}.callbacks.{_BACKUP}({folder!r})]")
        lines = [
            first,
            "# create and compile the model as before; this callback finds the epoch to resume from",
            fit,
        ]
    elif checkpoint.by == _OURS and checkpoint.in_loop:
        lines = [
            "import tfguard",
            "# build the model and its optimizer as before; without optimizer= if the model is compiled with it",
            f"step = tfguard.resume(model, {checkpoint.path!r}, optimizer=optimizer)",
        ]
    elif checkpoint.by == _OURS:
        fit = f"model.fit(..., initial_epoch=epoch{_epochs(checkpoint)})"
        lines = [
            "import tfguard",
            "# build and compile the model as before",
            f"epoch = tfguard.resume(model, {checkpoint.path!r})",
            fit,
        ]
    elif checkpoint.weights_only is None:
        return None
    else:
        fit = _fit(checkpoint.epoch, checkpoint.epochs)
        if checkpoint.weights_only:
            lines = [
                "# create and compile the model as before",
                f"model.load_weights({checkpoint.path!r})",
                fit,
            ]
        else:
            lines = [first, f"model = {keras}.models.load_model({checkpoint.path!r})", fit]
    return "\n".join(lines)


def _fit(epoch: int | None, epochs: int | None, more: str | None = None) -> str:
    known = (
        f"initial_epoch={epoch}" if epoch else None,
        f"epochs={epochs}" if epochs else None,
        more,
    )
    return f"model.fit({', '.join(['...', *filter(None, known)])})"


def _epochs(checkpoint: Checkpoint) -> str:
    return f", epochs={checkpoint.epochs}" if checkpoint.epochs else ""


def _keras(seen: Evidence) -> tuple[str, str]:
    """(name of Keras in code, import line); ``tf.keras`` if that is an older Keras than the installed Keras 3."""
    if "tf_keras" in dict_of(seen.header.get("versions")):
        return "tf.keras", "import tensorflow as tf"
    return "keras", "import keras"
