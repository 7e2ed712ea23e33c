"""What is known about the batches of a run before it starts, without reading its data.

Computed once per run, and used by panel, recording, refusal, stop and estimate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..batch_place import GENERATOR, IN_ARGUMENT, LOADER, METHOD, BatchPlace
from .pipeline_batch import (
    INFINITE,
    Batching,
    batchings,
    cardinality,
    place_without_batching,
    sample_count,
)

KERAS_DEFAULT_BATCH_SIZE = 32
_ARRAYS_LIMIT = 256  # a list of numbers can be much longer
# After these steps the first batch is what it was. `map` may change it, but rarely makes batches smaller.
_KEEPS_BATCHES = {"Map", "ParallelMap", "Prefetch", "Options", "Shuffle", "Cache", "Repeat", "Take"}
_KEEPS_BATCHES |= {"AssertCardinality"}


@dataclass(frozen=True, slots=True)
class FitPlan:
    """The batches of one run of ``fit``, ``evaluate`` or ``predict``. None: unknown.

    Attributes:
        batch_size: Samples in a batch as it is set; the largest if they differ.
        first_batch: Samples in the first batch; never an overestimate.
        sample_count: Number of samples, at most.
        place: Where the batch size is set.
    """

    batch_size: int | None = None
    first_batch: int | None = None
    sample_count: int | None = None
    place: BatchPlace = IN_ARGUMENT


def fit_plan(arguments: Mapping[str, Any]) -> FitPlan:
    """The plan of a run.

    Args:
        arguments: Arguments of ``fit``, ``evaluate`` or ``predict`` by name.
    """
    x = arguments.get("x")
    arrays = list(itertools.islice(leaves(x), _ARRAYS_LIMIT))
    if len(arrays) == 1 and hasattr(arrays[0], "element_spec"):
        # An iterator keeps the pipeline that it reads.
        return _of_dataset(getattr(arrays[0], "_dataset", arrays[0]))
    lengths = {length_of(one) for one in arrays}
    if arrays and None not in lengths:
        return _of_arrays(arguments, lengths)
    return _of_object(x)


def _of_arrays(arguments: Mapping[str, Any], lengths: set[int | None]) -> FitPlan:
    given = whole(arguments.get("batch_size"))
    length = lengths.pop()
    if lengths or length is None:  # Keras raises an error
        return FitPlan(given or KERAS_DEFAULT_BATCH_SIZE)
    length = math.floor(length * (1 - float(arguments.get("validation_split") or 0)))
    steps = whole(arguments.get("steps_per_epoch") or arguments.get("steps"))
    size = given or (math.ceil(length / steps) if steps else KERAS_DEFAULT_BATCH_SIZE)
    return FitPlan(size, min(size, length), length)


def _of_dataset(dataset: Any) -> FitPlan:
    found = batchings(dataset)
    count = sample_count(dataset, found)
    declared = _declared_size(dataset.element_spec)
    place = found[0].place if found else place_without_batching(dataset)
    if declared is not None:
        batches = cardinality(dataset)
        if count is None and batches > 0:
            count = batches * declared
        return FitPlan(declared, declared, count, place)
    if not found:
        return FitPlan(place=place)
    sizes = frozenset().union(*(one.sizes for one in found))
    first = _first_batch(found[0]) if len(found) == 1 else None
    return FitPlan(max(sizes), first, count, place)


def _first_batch(found: Batching) -> int | None:
    """The least size of the first batch; None if it may be smaller than the size that is set."""
    if found.step is None or not found.passed <= _KEEPS_BATCHES:
        return None
    batches, size = cardinality(found.step), min(found.sizes)
    if batches == INFINITE or batches > 1:
        return size
    elements = sample_count(found.step, [found])
    # Data of unknown length may be shorter than one batch.
    return min(size, elements) if batches == 1 and elements else None


def _of_object(x: Any) -> FitPlan:
    """Data whose batches the user's own code makes. That code is not run."""
    attributes = vars(x) if hasattr(x, "__dict__") else {}
    declared = whole(attributes.get("batch_size"))
    kind = type(x)
    if "DataLoader" in (base.__name__ for base in kind.__mro__):
        return FitPlan(declared, place=BatchPlace(LOADER, kind.__name__))
    if x is None or isinstance(x, (Mapping, list, tuple, str, bytes)):
        return FitPlan()
    if hasattr(kind, "__getitem__"):
        return FitPlan(declared, place=BatchPlace(METHOD, kind.__name__))
    if hasattr(kind, "__next__") or hasattr(kind, "__iter__"):
        return FitPlan(declared, place=BatchPlace(GENERATOR))
    return FitPlan(declared)


def _declared_size(spec: Any) -> int | None:
    """The first dimension of the first tensor, if the pipeline declares it."""
    first = next(leaves(spec), None)
    shape = getattr(first, "shape", None)
    if shape is None or getattr(shape, "rank", None) in (None, 0):
        return None
    return whole(shape[0])


def length_of(array: Any) -> int | None:
    """Number of rows of an array; None for anything else."""
    shape = getattr(array, "shape", None)
    is_array = hasattr(array, "dtype") or hasattr(array, "dtypes")
    try:
        return whole(shape[0]) if is_array and shape is not None and len(shape) else None
    except ValueError:
        return None  # a TensorShape of unknown rank


def leaves(value: Any) -> Iterator[Any]:
    """The values in nested tuples, lists and dictionaries; None is skipped."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield value


def whole(number: Any) -> int | None:
    """A whole number; None for anything else."""
    if number is None or isinstance(number, bool):
        return None
    try:
        return int(number)
    except (TypeError, ValueError):
        return None
