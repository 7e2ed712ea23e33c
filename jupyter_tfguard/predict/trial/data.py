"""Data for a trial: slices of the user's arrays, or arrays made from the shapes that a dataset declares."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from ...training.pipeline import input_of, steps_of
from ...training.plan import DATA, FitPlan, item_bytes, leaves
from ..bound.bound import flat_layers, slots_per_weight
from ..bound.graph import is_of_keras
from .travel import ARRAY_LIMIT_BYTES, NUMBERS, NotSendable, RandomArray

# Arguments of fit that change its memory and can be sent as they are.
_PASSED = ("class_weight", "shuffle")
# Samples that stand for a dataset; the child repeats them. More would only take memory and time from the trial.
_SAMPLES_BYTES = 4 << 20
# Steps of a tf.data pipeline that run no code of the user and give the same element each time.
_PURE = {"TensorSlice", "Tensor", "Range", "Batch", "ParallelBatch", "Prefetch", "Take", "Repeat"}
_PURE |= {"Options", "AssertCardinality"}


class DataSource(Enum):
    """Where the data of a trial come from."""

    SAMPLES = "samples of the arrays"
    RANDOM = "random numbers with shape and range of the arrays"
    ELEMENT = "the first element of the dataset, repeated"
    SPEC = "small numbers with the shapes that the dataset declares"


class TrialData(NamedTuple):
    """What the child trains on.

    Attributes:
        arrays: ``x``, ``y`` and ``sample_weight``, where given. They may have fewer samples than the trial needs.
        others: Other arguments of ``fit``, by name.
        is_dataset: The child makes a tf.data pipeline of the arrays, as the user does.
        source: Where they come from.
    """

    arrays: dict[str, Any]
    others: dict[str, Any]
    is_dataset: bool
    source: DataSource


def trial_data(plan: FitPlan, size: int, step_count: int) -> TrialData:
    """Take data for so many steps of batch size `size` from those of a fit.

    Copies at most 64 MiB of each array. A few samples stand for a dataset.

    Raises:
        NotSendable: The data are a generator or another object that cannot be sliced.
    """
    others = {name: given for name in _PASSED if (given := getattr(plan, name)) is not None}
    if plan.is_pipeline:
        others.pop("shuffle", None)  # fit ignores it for a dataset
        element, source = _of_dataset(plan, size)
        return TrialData(element, others, True, source)
    arrays = {
        name: _mapped(given, name, lambda leaf, name: _slice(leaf, name, size * step_count))
        for name in DATA
        if (given := getattr(plan, name)) is not None
    }
    is_random = any(isinstance(leaf, RandomArray) for leaf in leaves(arrays))
    source = DataSource.RANDOM if is_random else DataSource.SAMPLES
    return TrialData(arrays, others, False, source)


def _slice(array: Any, name: str, sample_count: int) -> Any:
    np = sys.modules["numpy"]
    if not hasattr(array, "shape") or not (hasattr(array, "dtype") or hasattr(array, "dtypes")):
        kind = type(array).__qualname__
        raise NotSendable(f"{name} ({kind}) is not an array: its data exist only while fit runs")
    first = np.asarray(array[:1])
    fitting = ARRAY_LIMIT_BYTES // max(1, first.nbytes)
    if fitting >= sample_count or first.dtype.kind not in NUMBERS:
        return np.asarray(array[:sample_count])
    # The range of the first samples keeps indices and classes valid.
    return RandomArray.like(np.asarray(array[: max(1, fitting)]), sample_count)


def _of_dataset(plan: FitPlan, sample_count: int) -> tuple[dict[str, Any], DataSource]:
    element, source = plan.x.element_spec, DataSource.SPEC
    one_bytes = _sample_bytes(element) or 1
    count = min(sample_count, max(1, _SAMPLES_BYTES // one_bytes))

    def from_spec(spec: Any, name: str) -> RandomArray:
        return _from_spec(spec, name, count)

    convert: Callable[[Any, str], Any] = from_spec
    if _is_cheap(plan):
        convert = _to_numpy
        element, source = next(iter(plan.x.take(1))), DataSource.ELEMENT
    parts = element if isinstance(element, tuple) else (element,)
    pairs = zip(DATA, parts, strict=False)
    return {name: _mapped(part, name, convert) for name, part in pairs}, source


def _is_cheap(plan: FitPlan) -> bool:
    """True if the first element is small, and reading it runs no code of the user and changes no random state."""
    size, sample_bytes = plan.first_batch, _sample_bytes(plan.x.element_spec)
    if size is None or sample_bytes is None or size * sample_bytes > ARRAY_LIMIT_BYTES:
        return False
    steps = list(steps_of(plan.x))
    return all(name in _PURE for name, _ in steps) and input_of(steps[-1][1]) is None


def _sample_bytes(element: Any) -> int | None:
    """Bytes of one sample of an element as declared; None if a shape is unknown."""
    found = 0
    for spec in leaves(element):
        if (shape := _sample_shape(spec)) is None:
            return None
        found += math.prod(shape) * item_bytes(spec.dtype)
    return found


def _sample_shape(spec: Any) -> tuple[int, ...] | None:
    """The declared shape of one sample; None for ragged and sparse tensors, and if a dimension is unknown."""
    if type(spec).__name__ != "TensorSpec" or spec.shape.rank is None or None in spec.shape[1:]:
        return None
    return tuple(spec.shape[1:])


def _to_numpy(tensor: Any, name: str) -> Any:
    return tensor.numpy()


def _from_spec(spec: Any, name: str, sample_count: int) -> RandomArray:
    if (shape := _sample_shape(spec)) is None:
        raise NotSendable(f"{name}: the dataset does not declare the shape of its samples: {spec}")
    # 0 and 1 are an index in every embedding and a class in every classifier.
    dtype = sys.modules["numpy"].dtype(spec.dtype.as_numpy_dtype)
    return RandomArray((sample_count, *shape), dtype.name, 0, 1)


def _mapped(value: Any, name: str, function: Callable[[Any, str], Any]) -> Any:
    """Nested tuples, lists and dictionaries with each array replaced by the result of the function."""
    if isinstance(value, Mapping):
        return {key: _mapped(item, f"{name}[{key!r}]", function) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [_mapped(item, f"{name}[{n}]", function) for n, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    return None if value is None else function(value, name)


def model_structure(model: Any) -> tuple[Any, ...]:
    """What decides the memory of a model: its layers, if they are Keras' own and form a graph; else the model itself."""
    layers = flat_layers(model)
    outputs = [_output_shapes(layer) for layer in layers]
    if not layers or not all(outputs) or not all(is_of_keras(type(layer)) for layer in layers):
        return (weakref.ref(model),)
    optimizer = getattr(model, "optimizer", None)
    parts = tuple((_config(layer), shape) for layer, shape in zip(layers, outputs, strict=True))
    return type(model), parts, type(optimizer), slots_per_weight(optimizer), str(model.loss)


def data_shapes(plan: FitPlan) -> tuple[str, ...]:
    """Shapes of one sample and dtypes of the arrays; the declared elements of a dataset."""
    values = leaves([plan.x, plan.y, plan.sample_weight])
    return tuple(
        str(getattr(one, "element_spec", None) or (one.shape[1:], getattr(one, "dtype", None)))
        for one in values
        if hasattr(one, "element_spec") or hasattr(one, "shape")
    )


def _config(layer: Any) -> str:
    values = {name: value for name, value in layer.get_config().items() if name != "name"}
    return f"{type(layer).__name__} {values}"


def _output_shapes(layer: Any) -> tuple[str, ...]:
    nodes = getattr(layer, "_inbound_nodes", ())
    return tuple(str(output.shape) for node in nodes for output in node.outputs)
