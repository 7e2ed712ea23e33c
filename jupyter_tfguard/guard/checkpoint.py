"""Saves a model in training when a fit is stopped: weights, optimizer and position, in one file that NumPy can load.

The file is an ordinary ``.npz``: ``weights/0000`` and so on in the order of ``model.variables``, then ``optimizer/0000`` and so
on, and ``tfguard.json`` with names, types and the position. Variables are written one after the other, in pieces, and
written data is dropped from the page cache, so the save needs little memory. The file gets its name once it is
complete.

A cancelled step may have updated only some of the variables. They then differ by one step.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import TfGuardError
from ..shield import is_users
from ..training.models import variable_bytes
from ..training.progress import FitProgress
from ..units import human_bytes, human_seconds, out_of
from .model_state import ModelNotSupported, ModelState, dtype_name, host_array
from .new_file import new_file

FORMAT = 1
BY = "tfguard"  # in the journal, where a callback has its class name
HEADER = "tfguard.json"
_PIECE_BYTES = 4 << 20
_SYNC_BYTES = 16 << 20
_MIN_FREE_BYTES = 64 << 20
_EXTRA_BYTES = 16 << 20
# The speed of a disk can be estimated only after some writing.
_SPEED_SECONDS = 1.0
_ERROR_LIMIT = 300
_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")


class CheckpointNotSaved(TfGuardError):
    """No checkpoint was saved; the text says why."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a fit, or of a training loop.

    Attributes:
        epoch: The running epoch, from 1; None before the first, and in a loop.
        step: Completed steps of that epoch; in a loop the updates of its optimizer.
        steps: Steps per epoch; None if unknown.
        epochs, batch_size: As given to ``fit``; None if unknown.
    """

    epoch: int | None = None
    step: int = 0
    steps: int | None = None
    epochs: int | None = None
    batch_size: int | None = None

    @classmethod
    def of(cls, progress: FitProgress) -> Position:
        """The position of a running fit."""
        done = progress.completed_step or 0
        return cls(progress.epoch, done, progress.steps, progress.epochs, progress.batch_size)

    @property
    def is_loop(self) -> bool:
        """True for a training loop that had begun."""
        return self.epoch is None and self.step > 0

    @property
    def resume_at(self) -> int:
        """Of a loop, the number of completed steps.

        Of a fit, the epoch to resume with, from 0 (Keras): the running one, or the next if all its steps were completed.
        """
        if self.epoch is None:
            return self.step
        is_complete = self.steps is not None and self.step >= self.steps
        return self.epoch if is_complete else self.epoch - 1


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint.

    Attributes:
        path: Path of the file.
        size_bytes: Size of the file.
        seconds: Duration of the save.
        position: The saved position.
        has_own_optimizer: The optimizer is not part of the model.
    """

    path: Path
    size_bytes: int
    seconds: float
    position: Position
    has_own_optimizer: bool = False

    def text(self) -> str:
        """A message for the user: where the model is saved, and the code that continues the training."""
        place = self.position
        path = json.dumps(str(self.path), ensure_ascii=False)
        if place.is_loop:
            return self._text_of_loop(path)
        at = ""
        if place.epoch is not None:
            at = f", at {out_of('epoch', place.epoch, place.epochs)}, step {place.step}"
        epochs = "..." if place.epochs is None else place.epochs
        return (
            f"Model and optimizer are saved in {self.path} ({human_bytes(self.size_bytes)}{at}).\n"
            "To continue, here or in a new kernel, build and compile the model as before. Then:\n"
            f"    import tfguard\n"
            f"    epoch = tfguard.resume(model, {path})\n"
            f"    model.fit(..., epochs={epochs}, initial_epoch=epoch)"
        )

    def _text_of_loop(self, path: str) -> str:
        other = ", optimizer=optimizer" if self.has_own_optimizer else ""
        return (
            f"Model and optimizer are saved in {self.path} ({human_bytes(self.size_bytes)}, at step {self.position.step}).\n"
            "To continue, here or in a new kernel, build the model and its optimizer as before. Then:\n"
            f"    import tfguard\n"
            f"    step = tfguard.resume(model, {path}{other})  # steps that are done"
        )


def save(
    model: Any,
    position: Position,
    folder: Path,
    *,
    optimizer: Any = None,
    limit_seconds: float = 30.0,
    available_bytes: Callable[[], int] | None = None,
) -> Saved:
    """Write the state of a model into a new file in `folder`.

    Runs no compiled function. Needs a few megabytes of memory, plus the size of the largest variable if that is on a
    GPU.

    Args:
        model: A built model, which must not be trained during the save.
        position: Stored in the file.
        folder: The folder of the notebook.
        optimizer: Trains the model; None for the one that the model has.
        limit_seconds: Give up if the disk is too slow for this limit.
        available_bytes: Reads how much memory this process can still take; None: do not check.

    Raises:
        CheckpointNotSaved: No file was written; the text says why. The only other exceptions are those of the user's
            signal handlers.
    """
    began = time.monotonic()
    folder = folder.absolute()
    try:
        state = ModelState.of(model, optimizer)
        sizes = [variable_bytes(variable) for _, variable in state.named()]
        _check_memory(sizes, available_bytes)
        _check_disk(sum(sizes), folder)
        name = f"tfguard-stop-{_plain_name(model)}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        with new_file(folder, name) as (file, publish):
            pace = _Pace(file, sum(sizes), began, limit_seconds)
            _write(file, state, position, pace)
            size = file.tell()
            path = publish()
        seconds = time.monotonic() - began
        return Saved(path, size, seconds, position, has_own_optimizer=optimizer is not None)
    except ModelNotSupported as no:
        raise CheckpointNotSaved(str(no)) from no
    except OSError as bad:
        raise CheckpointNotSaved(f"{folder}: {bad.strerror or bad}") from bad
    except MemoryError as bad:
        raise CheckpointNotSaved("There was not enough memory to save the model.") from bad
    except CheckpointNotSaved:
        raise
    except Exception as bad:  # of TensorFlow or Keras
        if is_users(bad):
            raise
        raise CheckpointNotSaved(f"{type(bad).__name__}: {str(bad)[:_ERROR_LIMIT]}") from bad


def _check_memory(sizes: list[int], available_bytes: Callable[[], int] | None) -> None:
    need = max(sizes, default=0) + _EXTRA_BYTES
    if available_bytes is not None and (available := available_bytes()) < need:
        raise CheckpointNotSaved(
            f"Only {human_bytes(available)} of memory are available; saving the model needs {human_bytes(need)}."
        )


def _check_disk(size: int, folder: Path) -> None:
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free < size + _MIN_FREE_BYTES:
        raise CheckpointNotSaved(
            f"The disk of {folder} has {human_bytes(free)} free; the checkpoint needs {human_bytes(size)}."
        )


def _plain_name(model: Any) -> str:
    name = getattr(model, "name", None)
    return _PLAIN.sub("-", name)[:40] if isinstance(name, str) and name else "model"


class _Pace:
    """Keeps the page cache small, and gives up if the disk is too slow."""

    def __init__(self, file: IO[bytes], total_bytes: int, began: float, limit: float) -> None:
        self._file, self._total, self._began, self._limit = file, total_bytes, began, limit
        self._done = self._synced = 0

    def wrote(self, size: int) -> None:
        """Call after each piece.

        Raises:
            CheckpointNotSaved: The whole save would take too long.
        """
        self._done += size
        if self._done - self._synced < _SYNC_BYTES:
            return
        self._synced = self._done
        descriptor = self._file.fileno()
        os.fsync(descriptor)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        spent = time.monotonic() - self._began
        expected = spent * self._total / self._done
        if spent > self._limit or (spent > _SPEED_SECONDS and expected > self._limit):
            raise CheckpointNotSaved(
                f"The disk is too slow: {human_bytes(self._total)} would take {human_seconds(expected)}, "
                f"and at most {human_seconds(self._limit)} are allowed."
            )


def _write(file: IO[bytes], state: ModelState, position: Position, pace: _Pace) -> None:
    variables = dict(state.named())
    header = {
        "format": FORMAT,
        "position": asdict(position),
        "optimizer": state.optimizer_name,
        "variables": {
            name: {
                "name": str(getattr(one, "path", getattr(one, "name", ""))),
                "shape": [int(length) for length in one.shape],
                "dtype": dtype_name(one),
            }
            for name, one in variables.items()
        },
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr(HEADER, json.dumps(header))
        for name, one in variables.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                _write_array(entry, host_array(one), pace)


def _write_array(entry: IO[bytes], array: Any, pace: _Pace) -> None:
    numpy = sys.modules["numpy"]
    shape = array.shape
    array = numpy.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind == "V":  # bfloat16 and float8, which plain NumPy cannot load
        array = array.view(f"u{array.dtype.itemsize}")
    header = numpy.lib.format.header_data_from_array_1_0(array) | {"shape": shape}
    numpy.lib.format.write_array_header_1_0(entry, header)
    content = memoryview(array.view("u1"))
    for start in range(0, len(content), _PIECE_BYTES):
        piece = content[start : start + _PIECE_BYTES]
        entry.write(piece)
        pace.wrote(len(piece))
