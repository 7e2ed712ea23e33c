"""What is known about a run of ``fit``, ``evaluate`` or ``predict`` before it starts, without reading its data.

Computed once per run, and used by panel, recording, refusal, stop and estimate.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

from ..batch_place import GENERATOR, IN_ARGUMENT, LOADER, METHOD, BatchPlace
from ..kept_data import Kept
from ..shield import shielded
from .pipeline import (
    INFINITE,
    Batching,
    batchings,
    cardinality,
    kept_by,
    place_without_batching,
    sample_count,
)

KERAS_DEFAULT_BATCH_SIZE = 32
DATA = ("x", "y", "sample_weight")
_BATCHES = ("batch_size", "first_batch", "sample_count", "place")
LARGEST_BATCH = 1 << 20  # considered for data whose samples are not counted
_LEAVES_LIMIT = 256  # a list of numbers can be much longer
# After these steps the first batch is what it was. `map` may change it, but rarely makes batches smaller.
_KEEPS_BATCHES = {"Map", "ParallelMap", "Prefetch", "Options", "Shuffle", "Cache", "Repeat", "Take"}
_KEEPS_BATCHES |= {"AssertCardinality"}
_ALIGNMENT = 64
_BITS = re.compile(r"[a-z]+(\d+)")  # bfloat16; float8_e4m3fn has 8
_DEFAULT_BYTES = 4


@dataclass(frozen=True, eq=False)
class FitPlan:
    """One run of ``fit``, ``evaluate`` or ``predict``. None: not given, or unknown.

    Attributes:
        batch_size: Samples in a batch as it is set; the largest if they differ.
        first_batch: Samples in the first batch; never an overestimate.
        sample_count: Number of samples, at most.
        place: Where the batch size is set.
        x, y, sample_weight, validation_data, validation_split, class_weight, shuffle, callbacks: As the user gave them.
        asked_size: The argument ``batch_size``, which Keras ignores for data that come in batches.
        epochs, steps: As given; `steps` is the number of batches in an epoch.
    """

    batch_size: int | None = None
    first_batch: int | None = None
    sample_count: int | None = None
    place: BatchPlace = IN_ARGUMENT
    _: KW_ONLY
    x: Any = None
    y: Any = None
    sample_weight: Any = None
    validation_data: Any = None
    validation_split: Any = None
    class_weight: Any = None
    shuffle: Any = None
    callbacks: Any = None
    asked_size: int | None = None
    epochs: int | None = None
    steps: int | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> FitPlan:
        """The plan of a call, from its arguments by name, with or without defaults. Errors of the guard are not raised."""
        names = (*DATA, "validation_data", "class_weight", "shuffle", "callbacks")
        given: dict[str, Any] = {name: arguments.get(name) for name in names}
        return cls(
            **given,
            asked_size=whole(arguments.get("batch_size")),
            validation_split=arguments.get("validation_split"),
            epochs=whole(arguments.get("epochs")),
            steps=whole(arguments.get("steps_per_epoch")) or whole(arguments.get("steps")),
        )._with_batches()

    def with_data(self, *parts: Any, asked_size: int | None = None) -> FitPlan:
        """The plan of the same call with other data: ``x``, ``y`` and ``sample_weight``."""
        data: dict[str, Any] = dict(zip(DATA, (*parts, None, None), strict=False))
        return replace(self, **data, asked_size=asked_size or self.asked_size)._with_batches()

    @property
    def is_pipeline(self) -> bool:
        """True for data that declare the shapes of their batches, as tf.data pipelines do."""
        return hasattr(self.x, "element_spec")

    @cached_property
    def copies_bytes(self) -> tuple[int, int]:
        """Bytes of the tensors that Keras copies whole arrays into, and the peak bytes while it copies them."""
        return copied_bytes([self.x, self.y, self.sample_weight, self.validation_data])

    def uncopied_bytes(self, used_count: int) -> int:
        """Bytes of those copies that a fit of only so many samples does not have."""
        if not self.sample_count:
            return 0
        return self.copies_bytes[0] * max(0, self.sample_count - used_count) // self.sample_count

    def kept_data(self) -> list[Kept]:
        """What its pipelines keep in memory; the large ones only."""
        steps = self.steps if self.steps and self.steps > 0 else None
        batches_read = None if steps is None else steps * (self.epochs or 1)
        return [
            kept
            for dataset, count in ((self.x, batches_read), (self.validation_data, None))
            if hasattr(dataset, "element_spec")
            for kept in kept_by(dataset, count)
        ]

    @property
    def batch_shape(self) -> list[int | None] | None:
        """The shape of a batch of the first input."""
        shape = getattr(self._first_input, "shape", None)
        try:
            sizes = [None if size is None else int(size) for size in tuple(shape or ())]
        except (TypeError, ValueError):
            return None  # a TensorShape of unknown rank
        first = self.batch_size
        if not self.is_pipeline and first is not None and self.sample_count is not None:
            first = min(first, self.sample_count)
        return [first, *sizes[1:]] if sizes else None

    @property
    def batch_dtype(self) -> str | None:
        """Name of the dtype of the first input, such as ``float32``."""
        dtype = getattr(self._first_input, "dtype", None)
        name = getattr(dtype, "name", None)
        return None if dtype is None else str(name if isinstance(name, str) else dtype)[:40]

    @property
    def _first_input(self) -> Any:
        """The first array, or what the pipeline declares of it."""
        first: Any = next(leaves(self.x), None)
        if hasattr(first, "element_spec"):
            return next(leaves(first.element_spec), None)
        return None if self.sample_count is None else first

    def identity(self) -> tuple[Any, ...]:
        """What makes two fits of a model the same for their memory; keeps no data."""
        data = tuple(
            (name, str(getattr(one, "element_spec", None) or getattr(one, "shape", type(one))))
            for name in (*DATA, "validation_data")
            for one in itertools.islice(leaves(getattr(self, name)), _LEAVES_LIMIT)
        )
        numbers = self.batch_size, self.first_batch, self.sample_count, self.place
        return numbers, bool(self.validation_split), data

    def _with_batches(self) -> FitPlan:
        found = FitPlan()
        with shielded("describing a batch"):
            arrays = list(itertools.islice(leaves(self.x), _LEAVES_LIMIT))
            lengths = {length_of(one) for one in arrays}
            if len(arrays) == 1 and hasattr(arrays[0], "element_spec"):
                # An iterator keeps the pipeline that it reads.
                found = _of_dataset(getattr(arrays[0], "_dataset", arrays[0]))
            elif arrays and None not in lengths:
                found = self._of_arrays(lengths)
            else:
                found = _of_object(self.x)
        known = {name: getattr(found, name) for name in _BATCHES}
        return replace(self, **known)

    def _of_arrays(self, lengths: set[int | None]) -> FitPlan:
        length = lengths.pop()
        if lengths or length is None:  # Keras raises an error
            return FitPlan(self.asked_size or KERAS_DEFAULT_BATCH_SIZE)
        length = math.floor(length * (1 - float(self.validation_split or 0)))
        by_steps = math.ceil(length / self.steps) if self.steps else KERAS_DEFAULT_BATCH_SIZE
        size = self.asked_size or by_steps
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
    except (TypeError, ValueError, OverflowError):
        return None


def rounded_down(size: int, digits: int = 2) -> int:
    """The next smaller or equal number that has this many leading binary digits and then zeros; at least 1."""
    step = 1 << max(0, size.bit_length() - digits)
    return max(1, size // step * step)


def item_bytes(dtype: Any) -> int:
    """Bytes of one element of a NumPy or TensorFlow dtype, or a dtype name; 4 if the name shows no size."""
    name = str(getattr(dtype, "name", dtype))
    bits = _BITS.match(name)
    if bits is not None:
        return max(1, int(bits[1]) // 8)
    return 1 if name == "bool" else _DEFAULT_BYTES


def copied_bytes(data: Any) -> tuple[int, int]:
    """Bytes of the tensors that Keras copies arrays into, and the peak bytes while it copies them.

    Keras copies whole NumPy arrays: floating-point arrays of another dtype are converted first, then TensorFlow copies
    them. A memory-mapped file, or an array whose alignment TensorFlow accepts, may not be copied.
    """
    kept = highest = 0
    for array in itertools.islice(leaves(data), _LEAVES_LIMIT):
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(array, numpy.ndarray) or array.dtype == object:
            continue
        size = int(array.nbytes)
        is_converted = array.dtype.kind == "f" and array.dtype.name != _float_name()
        if is_converted:
            size = int(array.size) * item_bytes(_float_name())
        elif array.flags.c_contiguous and array.ctypes.data % _ALIGNMENT == 0:
            continue
        highest = max(highest, kept + (2 * size if is_converted else size))
        kept += size
    return kept, highest


def _float_name() -> str:
    for name in ("keras", "tf_keras"):
        with contextlib.suppress(AttributeError):
            return str(sys.modules[name].backend.floatx()) if name in sys.modules else "float32"
    return "float32"
