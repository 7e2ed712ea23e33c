"""The models of the user's own training loop, which are saved if the guard stops the cell.

Of a ``fit`` the guard knows model, optimizer and position. Of a loop it knows what ``tfguard.checkpoint`` was given.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..training.iterations import count_now
from .checkpoint import CheckpointNotSaved, Position, Saved, save
from .model_state import ModelNotSupported, the_optimizer


class _LoopModel(NamedTuple):
    model: weakref.ref[Any]
    optimizer: weakref.ref[Any] | None  # None: the one of the model


class LoopModels:
    """The models of the running cell. They are held weakly: a deleted one is not saved."""

    def __init__(self) -> None:
        self._kept: dict[int, _LoopModel] = {}

    def __bool__(self) -> bool:
        return bool(self._kept)

    def keep(self, model: Any, optimizer: Any) -> None:
        """Save this model if the cell is stopped; a later call with the same model replaces its optimizer."""
        key = id(model)
        forget = lambda _: self._kept.pop(key, None)  # noqa: E731
        other = None if optimizer is None else weakref.ref(optimizer)
        self._kept[key] = _LoopModel(weakref.ref(model, forget), other)

    def clear(self) -> None:
        """Save none of them."""
        self._kept.clear()

    def save_all(self, folder: Path, available_bytes: Callable[[], int]) -> Iterator[Saved | str]:
        """Save each model once, and forget it; the text of a failure where one was not saved.

        A model without a step is left out: running the code again creates the same one.
        """
        kept, self._kept = list(self._kept.values()), {}
        for one in kept:
            model = one.model()
            optimizer = None if one.optimizer is None else one.optimizer()
            if model is None or (optimizer is None and one.optimizer is not None):
                continue
            try:
                step = count_now(the_optimizer(model) if optimizer is None else optimizer)
                if step == 0:
                    continue
                position = Position(step=step or 0)
                yield save(
                    model, position, folder, optimizer=optimizer, available_bytes=available_bytes
                )
            except (CheckpointNotSaved, ModelNotSupported) as no:
                yield f"The model {getattr(model, 'name', '')} was not saved: {no}"
