"""Continues training from a file written by :mod:`.checkpoint`."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from typing import Any

from ..errors import OTHER_SHAPE, TfGuardError
from .checkpoint import FORMAT, HEADER, Position
from .model_state import ModelState, dtype_name

_HEADER_LIMIT_BYTES = 64 << 20


class CheckpointUnusable(TfGuardError):
    """This file cannot be restored into this model; nothing was changed."""


def resume_fit(model: Any, path: str | os.PathLike[str]) -> int:
    """Restore weights, optimizer and random seeds of a model from a file ``tfguard-stop-….npz``.

    Args:
        model: A model built and compiled like the saved one.
        path: Path of the file.

    Returns:
        The epoch to continue with: pass it to ``fit`` as ``initial_epoch``.

    Raises:
        CheckpointUnusable: The file does not belong to this model, or is damaged. The model is not changed.
        ModelNotSupported: The model is not built, or has several optimizers.
    """
    numpy = sys.modules["numpy"]
    try:
        with numpy.load(path, allow_pickle=False) as content:
            header = _header(content.zip)
            if (damaged := content.zip.testzip()) is not None:
                raise zipfile.BadZipFile(f"{damaged} has changed")
            state = ModelState.of(model, build_optimizer=_has_slots(header["variables"]))
            for name, variable in _matched(state, header):
                _assign(variable, content[name])
        return Position(**header["position"]).initial_epoch
    except (zipfile.BadZipFile, EOFError, *OTHER_SHAPE) as bad:
        raise CheckpointUnusable(
            f"{path} is damaged, or not a checkpoint of tfguard: {bad}"
        ) from bad


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(HEADER).file_size > _HEADER_LIMIT_BYTES:
        raise ValueError("its header is too long")
    found: dict[str, Any] = json.loads(archive.read(HEADER))
    if found["format"] != FORMAT:
        raise CheckpointUnusable(
            f"The file has format {found['format']}, and this version of tfguard reads format {FORMAT}."
        )
    return found


def _matched(state: ModelState, header: dict[str, Any]) -> list[tuple[str, Any]]:
    """The name of each saved variable, with the matching variable of the model.

    Raises:
        CheckpointUnusable: The variables do not match.
    """
    saved = header["variables"]
    ours = dict(state.named())
    if not any(name.startswith("optimizer/") for name in saved):
        ours = {name: one for name, one in ours.items() if name.startswith("weights/")}
    elif header["optimizer"] != state.optimizer_name:
        raise CheckpointUnusable(
            f"The file has the state of {header['optimizer']}, but the model is compiled with {state.optimizer_name}."
        )
    for part in ("weights", "optimizer"):
        counts = [sum(name.startswith(part) for name in names) for names in (saved, ours)]
        if counts[0] != counts[1]:
            raise CheckpointUnusable(
                f"The file has {counts[0]} variables of {part}, but the model has {counts[1]}."
            )
    for name, one in ours.items():
        found = [list(saved[name]["shape"]), saved[name]["dtype"]]
        wanted = [[int(length) for length in one.shape], dtype_name(one)]
        if found != wanted:
            raise CheckpointUnusable(
                f"{saved[name]['name'] or name} is {found[1]} {tuple(found[0])} in the file, "
                f"but {wanted[1]} {tuple(wanted[0])} in the model."
            )
    return list(ours.items())


def _has_slots(saved: dict[str, Any]) -> bool:
    """True if the optimizer had made a step; before that it has only scalar variables."""
    return any(one["shape"] for name, one in saved.items() if name.startswith("optimizer/"))


def _assign(variable: Any, array: Any) -> None:
    name = dtype_name(variable)
    if array.dtype.name != name and array.dtype.kind == "u":
        array = array.view(getattr(sys.modules["ml_dtypes"], name))
    variable.assign(array)
