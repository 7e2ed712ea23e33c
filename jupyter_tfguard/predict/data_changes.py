"""Memory that the data of a fit need without a reason, with the change that saves it."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..units import human_bytes
from .answer import Change
from .batches import copied_bytes, input_of, steps_of
from .sizes import item_bytes, leaves

_WORTH_BYTES = 64 << 20  # less is not worth a sentence


def data_changes(arguments: Mapping[str, Any]) -> Iterator[Change]:
    """What to change in the data.

    Args:
        arguments: The arguments of ``fit``, by name.
    """
    for name in ("x", "y", "validation_data"):
        yield from _of_arrays(name, arguments.get(name))
        dataset = arguments.get(name)
        if hasattr(dataset, "element_spec"):
            yield from _of_dataset(dataset)


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


def _of_dataset(dataset: Any) -> Iterator[Change]:
    for name, step in steps_of(dataset):
        source = input_of(step)
        if source is None:
            return
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            if "Shuffle" in name:
                yield from _of_shuffle(int(step._buffer_size), source)
            elif "Cache" in name and not step._filename.numpy():
                yield from _of_cache(source)


def _of_shuffle(count: int, source: Any) -> Iterator[Change]:
    each = _element_bytes(source)
    elements = int(source.cardinality())
    held = min(count, elements) if elements > 0 else count
    if each is not None and held * each >= _WORTH_BYTES:
        yield Change(
            f"shuffle({count}) holds {held:,} elements of {human_bytes(each)}: shuffle file names or numbers "
            "before the data are loaded, or use a smaller buffer.",
            held * each,
        )


def _of_cache(source: Any) -> Iterator[Change]:
    each, elements = _element_bytes(source), int(source.cardinality())
    if each is not None and elements > 0 and elements * each >= _WORTH_BYTES:
        yield Change(
            f"cache() keeps all {elements:,} elements in memory: pass a file name to cache(), or place it before the "
            "step that makes the elements large.",
            elements * each,
        )


def _element_bytes(dataset: Any) -> int | None:
    """Bytes of one element; None if a dimension is unknown."""
    specs = sys.modules["tensorflow"].nest.flatten(dataset.element_spec)
    if any(spec.shape.rank is None or None in tuple(spec.shape) for spec in specs):
        return None
    return sum(int(math.prod(spec.shape)) * item_bytes(spec.dtype) for spec in specs)
