"""Memory that the data of a fit need without a reason, with the change that saves it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..training.pipeline import kept_data
from ..training.plan import leaves
from .answer import Change
from .batches import copied_bytes

_WORTH_BYTES = 64 << 20  # less is not worth a sentence


def data_changes(arguments: Mapping[str, Any]) -> Iterator[Change]:
    """What to change in the data.

    Args:
        arguments: The arguments of ``fit``, by name.
    """
    for name in ("x", "y", "validation_data"):
        yield from _of_arrays(name, arguments.get(name))
    yield from (Change(kept.text, kept.size_bytes) for kept in kept_data(arguments))


def _of_arrays(name: str, value: Any) -> Iterator[Change]:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    wide = [
        array
        for array in leaves(value)
        if isinstance(array, numpy.ndarray) and array.dtype == numpy.float64
    ]
    converted = sum(array.size * 4 for array in wide)
    if converted >= _WORTH_BYTES:
        yield Change(
            f"{name} is float64: Keras converts the whole array. Create it as float32.", converted
        )
    copied, _ = copied_bytes({name: value})
    if copied >= _WORTH_BYTES:
        yield Change(
            f"Keras copies {name} into a tensor: read it in batches with tf.data or a PyDataset.",
            copied,
        )
