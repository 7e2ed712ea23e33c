"""What a tf.data pipeline keeps in memory: the elements in its shuffle buffers and caches."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ..kept_data import Kept
from ..units import human_bytes
from .pipeline_batch import keeps_elements, kind_of
from .plan import whole

_WORTH_BYTES = 64 << 20  # less is not worth a sentence
_CHAIN_LIMIT = 20


def kept_data(arguments: Mapping[str, Any]) -> list[Kept]:
    """What the pipelines among the arguments of ``fit`` keep; the large ones only."""
    counts = {"x": _batches_read(arguments), "validation_data": None}
    return [
        kept
        for name, count in counts.items()
        if hasattr(dataset := arguments.get(name), "element_spec")
        for kept in _kept_by(dataset, count)
    ]


def _batches_read(arguments: Mapping[str, Any]) -> int | None:
    """Batches that a fit with ``steps_per_epoch`` reads in all; None if it reads all of them."""
    steps, epochs = whole(arguments.get("steps_per_epoch")), whole(arguments.get("epochs"))
    return steps * (epochs or 1) if steps and steps > 0 else None


def _kept_by(dataset: Any, most: int | None) -> Iterator[Kept]:
    """What the steps of one pipeline keep, last one first. `most`: elements that are read; None for all."""
    for name, step in steps_of(dataset):
        source = input_of(step)
        if source is None:
            return
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            if "Shuffle" in name:
                yield from _by_shuffle(int(step._buffer_size), source)
            elif "Cache" in name and not step._filename.numpy():
                yield from _by_cache(source, most)
            elif most is not None and "Batch" in name:
                most *= int(step._batch_size)
            elif most is not None and not keeps_elements(step):
                most = None


def steps_of(dataset: Any) -> Iterator[tuple[str, Any]]:
    """The steps of a tf.data pipeline, last one first: ``("Shuffle", dataset)``. At most 20."""
    step = dataset
    for _ in range(_CHAIN_LIMIT):
        yield kind_of(step), step
        step = input_of(step)
        if step is None:
            return


def input_of(step: Any) -> Any:
    """The step before this one; None for the first."""
    return getattr(step, "_input_dataset", None)


def _by_shuffle(count: int, source: Any) -> Iterator[Kept]:
    each = _element_bytes(source)
    elements = int(source.cardinality())
    held = min(count, elements) if elements > 0 else count
    if each is not None and held * each >= _WORTH_BYTES:
        yield Kept(
            f"shuffle({count}) holds {held:,} elements of {human_bytes(each)}: shuffle file names or numbers "
            "before the data are loaded, or use a smaller buffer.",
            held * each,
        )


def _by_cache(source: Any, most: int | None) -> Iterator[Kept]:
    each, elements = _element_bytes(source), int(source.cardinality())
    if most is not None and elements > 0:
        elements = min(elements, most)
    if each is not None and elements > 0 and elements * each >= _WORTH_BYTES:
        all_or_some = "all" if elements == int(source.cardinality()) else "the first"
        yield Kept(
            f"cache() keeps {all_or_some} {elements:,} elements in memory: pass a file name to cache(), or place it before the "
            "step that makes the elements large.",
            elements * each,
        )


def _element_bytes(dataset: Any) -> int | None:
    """Bytes of one element; None if a dimension is unknown."""
    specs = sys.modules["tensorflow"].nest.flatten(dataset.element_spec)
    if any(spec.shape.rank is None or None in tuple(spec.shape) for spec in specs):
        return None
    return sum(int(math.prod(spec.shape)) * int(spec.dtype.size) for spec in specs)
