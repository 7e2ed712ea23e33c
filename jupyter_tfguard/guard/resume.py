"""Continues training from a file written by :mod:`.checkpoint`.

The whole file is checked before the first variable changes: a file is only as good as its last array.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tokenize
import zipfile
import zlib
from typing import IO, Any

from ..errors import OTHER_SHAPE, TfGuardError
from .checkpoint import FORMAT, HEADER, Position
from .model_state import ModelState, dtype_name

_HEADER_LIMIT_BYTES = 64 << 20
# Raised by zipfile, json and NumPy for a damaged or forged file. RuntimeError: also an encrypted entry, a compression
# that is not supported, and JSON that is nested too deeply.
_DAMAGED = (
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    tokenize.TokenError,  # an array's header, which NumPy reads as Python
    RuntimeError,
    MemoryError,
    *OTHER_SHAPE,
)


class CheckpointUnusable(TfGuardError):
    """This file cannot be restored into this model; nothing was changed."""


class CheckpointHalfRestored(TfGuardError):
    """Only some variables were restored; the text says why, and what to do."""


def restore_training(model: Any, path: str | os.PathLike[str], optimizer: Any = None) -> int:
    """Restore weights, optimizer and random seeds of a model from a file ``tfguard-stop-….npz``.

    Args:
        model: A model built and compiled like the saved one.
        path: Path of the file.
        optimizer: Trains the model; None for the one that the model has.

    Returns:
        The epoch to continue with: pass it to ``fit`` as ``initial_epoch``. Of a training loop, the number of steps that
        were made.

    Raises:
        CheckpointUnusable: The file does not belong to this model, or is damaged. The model is not changed.
        CheckpointHalfRestored: Memory or the disk failed while the variables were restored.
        ModelNotSupported: The model is not built, or has several optimizers.
        OSError: The file cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            header = _header(archive)
            position = _position(header["position"])
            _check_arrays(archive, header["variables"])
        except (*_DAMAGED, OSError) as bad:
            why = str(bad) or type(bad).__name__
            raise CheckpointUnusable(
                f"{path} is damaged, or not a checkpoint of tfguard: {why}"
            ) from bad
        # The weights are compared first: then a file of another model does not even build the optimizer.
        _match(ModelState.of(model, optimizer), header, "weights")
        has_slots = _has_slots(header["variables"])
        state = ModelState.of(model, optimizer, build_optimizer=has_slots)
        _match(state, header, "optimizer")
        _restore(state, archive, header["variables"], path)
    return position.resume_at


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(HEADER).file_size > _HEADER_LIMIT_BYTES:
        raise ValueError("its header is too long")
    found: dict[str, Any] = json.loads(archive.read(HEADER))
    if found["format"] != FORMAT:
        raise CheckpointUnusable(
            f"The file has format {found['format']}, and this version of tfguard reads format {FORMAT}."
        )
    if not isinstance(found["optimizer"], (str, type(None))):
        raise ValueError("the name of its optimizer is wrong")
    for name, one in found["variables"].items():
        if not isinstance(one["dtype"], str) or not isinstance(one["name"], str):
            raise ValueError(f"its description of {name} is wrong")
        if not all(_is_count(length) for length in one["shape"]):
            raise ValueError(f"its shape of {name} is wrong")
    return found


def _position(found: dict[str, Any]) -> Position:
    for name, value in found.items():
        if value is not None and not _is_count(value):
            raise ValueError(f"its {name} is {value!r}")
    position = Position(**found)
    if not _is_count(position.step) or position.epoch == 0:
        raise ValueError("its position is wrong")
    return position


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _check_arrays(archive: zipfile.ZipFile, variables: dict[str, Any]) -> None:
    """Compare each array's own header with the file's description, and the content with its checksum.

    Raises:
        ValueError, LookupError: They differ, or an array is missing.
    """
    for name, one in variables.items():
        with archive.open(f"{name}.npy") as entry:
            shape, dtype = _array_header(entry)
            stored = archive.getinfo(f"{name}.npy").file_size - entry.tell()
        wanted = _stored_dtype(one["dtype"])
        if (list(shape), dtype) != (list(one["shape"]), wanted):
            raise ValueError(f"{name} is {dtype} {shape}, but should be {wanted} {one['shape']}")
        if stored != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name} has {stored} bytes")
    if (damaged := archive.testzip()) is not None:
        raise zipfile.BadZipFile(f"{damaged} has changed")


def _array_header(entry: IO[bytes]) -> tuple[tuple[int, ...], Any]:
    """Shape and dtype of an array in C order."""
    form = sys.modules["numpy"].lib.format
    if form.read_magic(entry) != (1, 0):
        raise ValueError("an array has another format")
    shape, is_fortran, dtype = form.read_array_header_1_0(entry)
    if is_fortran and len(shape) > 1:
        raise ValueError("an array has another order")
    return shape, dtype


def _stored_dtype(name: str) -> Any:
    """How :mod:`.checkpoint` stores a dtype: those that plain NumPy does not know are unsigned integers."""
    numpy = sys.modules["numpy"]
    kind = _dtype(name)
    return numpy.dtype(f"u{kind.itemsize}") if kind.kind == "V" else kind


def _dtype(name: str) -> Any:
    numpy = sys.modules["numpy"]
    if (kind := getattr(sys.modules.get("ml_dtypes"), name, None)) is not None:
        return numpy.dtype(kind)
    return numpy.dtype(name)


def _match(state: ModelState, header: dict[str, Any], part: str) -> None:
    """Compare one part of the model with the file.

    Raises:
        CheckpointUnusable: They do not match.
    """
    saved = {name: one for name, one in header["variables"].items() if name.startswith(f"{part}/")}
    if part == "optimizer" and not saved:
        return
    if part == "optimizer" and header["optimizer"] != state.optimizer_name:
        raise CheckpointUnusable(
            f"The file has the state of {header['optimizer']}, but the model is compiled with {state.optimizer_name}."
        )
    ours = {name: one for name, one in state.named() if name.startswith(f"{part}/")}
    if saved.keys() != ours.keys():
        raise CheckpointUnusable(
            f"The file has {len(saved)} variables of {part}, but the model has {len(ours)}."
        )
    for name, one in ours.items():
        found = [list(saved[name]["shape"]), saved[name]["dtype"]]
        wanted = [[int(length) for length in one.shape], dtype_name(one)]
        if found != wanted:
            raise CheckpointUnusable(
                f"{saved[name]['name'] or name} is {found[1]} {tuple(found[0])} in the file, "
                f"but {wanted[1]} {tuple(wanted[0])} in the model."
            )


def _has_slots(saved: dict[str, Any]) -> bool:
    """True if the optimizer had made a step; before that it has only scalar variables."""
    return any(one["shape"] for name, one in saved.items() if name.startswith("optimizer/"))


def _restore(
    state: ModelState, archive: zipfile.ZipFile, saved: dict[str, Any], path: str | os.PathLike[str]
) -> None:
    """Assign all saved variables. Largest first: if memory is too short for one, nothing has changed yet."""
    numpy = sys.modules["numpy"]
    named = [(name, one) for name, one in state.named() if name in saved]
    named.sort(key=lambda pair: -math.prod(saved[pair[0]]["shape"]))
    done = 0
    try:
        for name, variable in named:
            with archive.open(f"{name}.npy") as entry:
                array = numpy.lib.format.read_array(entry, allow_pickle=False)
            kind = _dtype(saved[name]["dtype"])
            variable.assign(array if array.dtype == kind else array.view(kind))
            done += 1
    except (MemoryError, OSError, zipfile.BadZipFile, zlib.error) as bad:
        why = "Memory ran out" if isinstance(bad, MemoryError) else f"{path} could not be read"
        if not done:
            raise CheckpointUnusable(f"{why}; the model was not changed.") from bad
        raise CheckpointHalfRestored(
            f"{why} after {done} of {len(named)} variables were restored. "
            "Build and compile the model again before you resume."
        ) from bad
