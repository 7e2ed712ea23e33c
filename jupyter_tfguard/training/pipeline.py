"""The batch size of a tf.data pipeline, and what it keeps in memory, from its steps and without reading its data.

Walks from the last step back. Steps that pass batches on are passed, joined pipelines are followed each, and the
functions of ``interleave``, ``flat_map`` and ``group_by_window`` are read from their graphs. Does not follow a pipeline
into a server of tf.data, unless it was made here.

Source: private attributes of the steps, verified with TensorFlow 2.15 to 2.21. Where one is missing the batch is unknown.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..batch_place import BUCKETS, FUNCTION, GENERATOR, PIPELINE, BatchPlace
from ..kept_data import Kept
from ..units import human_bytes

INFINITE = -1
_STEPS_LIMIT = 200
_CHAIN_LIMIT = 20
_WORTH_BYTES = 64 << 20  # kept; less is not worth a sentence
_SIZE_ATTRIBUTES = ("_batch_size", "_batch_sizes", "_batch_size_t")
# The elements after these steps are made of other parts than the batches before.
_ENDS = ("Unbatch", "Window")
# After these steps there are as many elements as before, or fewer, or the same again.
_KEEPS_ELEMENTS = {"Map", "ParallelMap", "Scan", "Filter", "TakeWhile", "IgnoreErrors", "Unique"}
_KEEPS_ELEMENTS |= {"Prefetch", "Options", "Shuffle", "Cache", "Repeat", "Take", "Skip", "Shard"}
_KEEPS_ELEMENTS |= {"AssertCardinality", "Snapshot", "Restructured", "DenseToRagged"}
_BUCKETED = "bucket_by_sequence_length"
# Functions that make datasets with a batch_size of their own: a fragment of the module or name of a function that they
# give to map(), and their name.
_MAKERS = {
    "image_dataset_utils": "image_dataset_from_directory",
    "text_dataset_utils": "text_dataset_from_directory",
    "audio_dataset_utils": "audio_dataset_from_directory",
    "timeseries_dataset_utils": "timeseries_dataset_from_array",
    "timeseries": "timeseries_dataset_from_array",  # Keras 2
    "image_dataset": "image_dataset_from_directory",
    "text_dataset": "text_dataset_from_directory",
    "audio_dataset": "audio_dataset_from_directory",
}
_CSV = "make_csv_dataset"
_METHODS = {"PaddedBatch": "padded_batch", "Rebatch": "rebatch"}
# In the graph of a function: operations that make batches; their second input is the size.
_BATCH_OPERATIONS = {
    "BatchDataset": "batch",
    "BatchDatasetV2": "batch",
    "ParallelBatchDataset": "batch",
    "PaddedBatchDataset": "padded_batch",
    "PaddedBatchDatasetV2": "padded_batch",
    "RebatchDatasetV2": "rebatch",
}
_SELECTIONS = ("StridedSlice", "GatherV2", "Identity", "Cast", "Squeeze", "Reshape", "Pack")


class Batching(NamedTuple):
    """A step that makes batches.

    Attributes:
        sizes: The batch sizes that it makes, more than one if it depends on the sample.
        place: Where they are set.
        step: The step; None if it is in the function of another step.
        passed: Kinds of the steps after it.
    """

    sizes: frozenset[int]
    place: BatchPlace
    step: Any = None
    passed: frozenset[str] = frozenset()


def batchings(dataset: Any) -> list[Batching]:
    """The steps that made the batches of a pipeline: one, or one for each pipeline that it joins; none if unknown."""
    return _Walk().back(dataset, ())


def kind_of(step: Any) -> str:
    """``Shuffle`` for ``_ShuffleDataset``, ``ParallelMap`` for ``_ParallelMapDataset``."""
    return type(step).__name__.strip("_").removesuffix("V2").removesuffix("Dataset")


def inputs_of(step: Any) -> list[Any]:
    """The pipelines that a step reads."""
    joined = getattr(step, "_data_inputs", None)  # sample_from_datasets: without its selector
    if joined is not None:
        return list(joined)
    with contextlib.suppress(Exception):  # an abstract method that user classes may not have
        return list(step._inputs())
    return []


def cardinality(dataset: Any) -> int:
    """Number of elements; :data:`INFINITE` for an endless pipeline, -2 if unknown."""
    with contextlib.suppress(Exception):  # part of a graph, or an iterator or distributed dataset
        return int(dataset.cardinality())
    return -2


def keeps_elements(step: Any) -> bool:
    """True for a step that makes no more elements than it reads, apart from repetitions."""
    return kind_of(step) in _KEEPS_ELEMENTS


def is_from_generator(dataset: Any) -> bool:
    """True if the last step that makes elements is ``from_generator``."""
    for step in _line(dataset):
        if kind_of(step) == "FlatMap":
            return "from_generator" in getattr(_function(step, "_map_func"), "__qualname__", "")
    return False


def place_without_batching(dataset: Any) -> BatchPlace:
    """Where the batches of a pipeline without a batch step come from."""
    if is_from_generator(dataset):
        return BatchPlace(GENERATOR)
    return BatchPlace(PIPELINE, "batch")


class _Walk:
    """One walk through a pipeline; bounded."""

    def __init__(self) -> None:
        self._left = _STEPS_LIMIT

    def back(self, step: Any, after: tuple[Any, ...]) -> list[Batching]:
        """The batch steps at or before `step`. `after`: the steps between it and the end, nearest first."""
        self._left -= 1
        if self._left < 0:
            return []
        kind = kind_of(step)
        if "batch" in kind.lower() and (sizes := _sizes_of(step)):
            passed = frozenset(map(kind_of, after))
            return [Batching(frozenset(sizes), _place(step, kind, after), step, passed)]
        if kind in _ENDS:
            return []
        for name in ("_reduce_func", "_map_func"):
            if name == "_reduce_func" or kind.endswith(("FlatMap", "Interleave")):
                wrapper = getattr(step, name, None)
                if wrapper is not None:
                    return self._in_function(wrapper)
        found = self._all(inputs_of(step), (step, *after), first=kind == "Zip")
        # apply() notes what it was applied to: that leads past a step which names no input.
        return found or self._all(getattr(step, "_input_datasets", None) or [], (step, *after))

    def _all(
        self, steps: list[Any], after: tuple[Any, ...], *, first: bool = False
    ) -> list[Batching]:
        """The batch steps of all pipelines, or of the first one that has any."""
        found: list[Batching] = []
        for one in steps:
            if not (first and found):
                found += self.back(one, after)
        return found

    def _in_function(self, wrapper: Any) -> list[Batching]:
        """The batch steps in the function of ``interleave``, ``flat_map`` or ``group_by_window``."""
        with contextlib.suppress(Exception):  # private parts of TensorFlow differ between versions
            graph = wrapper.function.graph
            captured = {id(inside): outside for outside, inside in graph.captures}
            return self._operations(graph.outputs[0], captured, wrapper._func)
        return []

    def _operations(self, tensor: Any, captured: dict[int, Any], function: Any) -> list[Batching]:
        self._left -= 1
        operation = tensor.op
        if self._left < 0:
            return []
        if operation.type in _BATCH_OPERATIONS:
            sizes = _values(operation.inputs[1], captured)
            if not sizes:
                return []
            place = BatchPlace(PIPELINE, _BATCH_OPERATIONS[operation.type])
            if _BUCKETED in getattr(function, "__qualname__", ""):
                place = BatchPlace(BUCKETS, _BUCKETED)
            return [Batching(frozenset(sizes), place)]
        if operation.type == "Placeholder":
            outside = captured.get(id(tensor))
            return [] if outside is None else self._outside(outside, function)
        if operation.type.removesuffix("V2").removesuffix("Dataset") in _ENDS:
            return []
        variants = [one for one in operation.inputs if one.dtype.name == "variant"]
        return [found for one in variants for found in self._operations(one, captured, function)]

    def _outside(self, variant: Any, function: Any) -> list[Batching]:
        """The batch steps of a pipeline that the function takes from its closure or from the notebook."""
        names = inspect.getclosurevars(inspect.unwrap(function))
        for value in [*names.nonlocals.values(), *names.globals.values()]:
            if getattr(value, "_variant_tensor", None) is variant:
                return self.back(value, ())
        return []


def _sizes_of(step: Any) -> set[int]:
    for name in _SIZE_ATTRIBUTES:
        value = vars(step).get(name)
        if value is not None:
            return _whole_numbers(value)
    return set()


def _values(tensor: Any, captured: dict[int, Any]) -> set[int]:
    """The numbers that a tensor in a graph may have; empty if unknown."""
    known = sys.modules["tensorflow"].get_static_value(tensor)
    if known is not None:
        return _whole_numbers(known)
    if (outside := captured.get(id(tensor))) is not None:
        return _whole_numbers(outside)
    if tensor.op.type in _SELECTIONS:
        return _values(tensor.op.inputs[0], captured)
    return set()


def _whole_numbers(value: Any) -> set[int]:
    with contextlib.suppress(Exception):  # a symbolic tensor: the pipeline is part of a graph
        numbers = sys.modules["numpy"].asarray(value).reshape(-1)
        return {int(one) for one in numbers if int(one) > 0}
    return set()


def _place(step: Any, kind: str, after: tuple[Any, ...]) -> BatchPlace:
    if after and _CSV in getattr(_function(after[0], "_map_func"), "__qualname__", ""):
        return BatchPlace(FUNCTION, _CSV)
    maker = _maker(step)
    # The functions that read folders name the classes on the dataset that they return.
    is_returned = any("class_names" in vars(one) for one in (step, *after[:1]))
    if maker is not None and (is_returned or maker.startswith("timeseries")):
        return BatchPlace(FUNCTION, maker)
    method = next((name for part, name in _METHODS.items() if part in kind), "batch")
    if any(kind_of(one) == "DenseToRagged" for one in inputs_of(step)):
        method = "ragged_batch"
    return BatchPlace(PIPELINE, method)


def _maker(step: Any) -> str | None:
    """The function of Keras that made the samples of this batch step, if only its own steps are between."""
    waiting = inputs_of(step)
    for _ in range(_STEPS_LIMIT):
        if not waiting:
            return None
        one = waiting.pop()
        module = getattr(_function(one, "_map_func"), "__module__", None) or ""
        if module.partition(".")[0] in ("keras", "tf_keras"):
            return _MAKERS.get(module.rpartition(".")[2])
        if kind_of(one) not in ("Prefetch", "Shuffle", "Zip"):
            return None
        waiting += inputs_of(one)
    return None


def _function(step: Any, name: str) -> Any:
    """The user's function that a step calls; None if it calls none."""
    return getattr(getattr(step, name, None), "_func", None)


def _line(dataset: Any) -> Iterator[Any]:
    """The steps from the last one back, along the first input of each."""
    step, left = dataset, _STEPS_LIMIT
    while step is not None and left:
        yield step
        step, left = next(iter(inputs_of(step)), None), left - 1


def sample_count(dataset: Any, found: list[Batching]) -> int | None:
    """Number of samples of a pipeline at most, without repetitions; None if unknown.

    Args:
        dataset: The pipeline.
        found: Its batch steps.
    """
    counts = [None if one.step is None else _elements(one.step) for one in found]
    if not found or None in counts:
        return None
    total = sum(count for count in counts if count is not None)
    batches = cardinality(dataset)
    return min(total, batches * max(found[0].sizes)) if batches > 0 and len(found) == 1 else total


def _elements(batch_step: Any) -> int | None:
    """Number of samples that reach a batch step at most, without repetitions; None if unknown."""
    before = inputs_of(batch_step)[0]
    if "Rebatch" in kind_of(batch_step):
        return sample_count(before, batchings(before))
    least: int | None = None
    for step in _line(before):
        kind, count = kind_of(step), cardinality(step)
        if kind == "Unbatch":
            inside = inputs_of(step)[0]
            count = sample_count(inside, batchings(inside)) or -1
        if count >= 0:
            least = count if least is None else min(least, count)
        if kind not in _KEEPS_ELEMENTS:
            break
    return least


def kept_by(dataset: Any, most: int | None) -> Iterator[Kept]:
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
