"""Describes a fit without reading its data: batch, shapes, model, optimizer."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

_KERAS_DEFAULT_BATCH_SIZE = 32
_CHAIN_LIMIT = 20
_KERAS = ("keras", "tf_keras", "tensorflow")


def describe_batch(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """``batch_size``, ``batch_shape`` (of the first input) and ``batch_dtype``; None for unknown values.

    Args:
        arguments: Arguments of ``fit``, ``evaluate`` or ``predict`` by name.
    """
    x = first_leaf(arguments.get("x"))
    given = _whole(arguments.get("batch_size"))
    spec = getattr(x, "element_spec", None) if _module_root(x) == "tensorflow" else None
    if spec is not None:
        return _describe_dataset(x, spec)
    if _is_array(x):
        sizes = _sizes(x)
        size = given or _KERAS_DEFAULT_BATCH_SIZE
        shape = None
        if sizes:
            shape = [size if sizes[0] is None else min(size, sizes[0]), *sizes[1:]]
        return {"batch_size": size, "batch_shape": shape, "batch_dtype": dtype_name(x)}
    # A PyDataset or Sequence often has an attribute of that name; its code is not run.
    declared = _whole(vars(x).get("batch_size")) if hasattr(x, "__dict__") else None
    return {"batch_size": given or declared, "batch_shape": None, "batch_dtype": None}


def _describe_dataset(dataset: Any, spec: Any) -> dict[str, Any]:
    leaf = first_leaf(spec)
    sizes = _sizes(leaf)
    size = (sizes[0] if sizes else None) or _dataset_batch_size(dataset)
    shape = [size, *sizes[1:]] if sizes else None
    return {"batch_size": size, "batch_shape": shape, "batch_dtype": dtype_name(leaf)}


def _dataset_batch_size(dataset: Any) -> int | None:
    """The size given to ``.batch()``, which the element's shape does not show if the last batch may be smaller.

    Source: ``_batch_size`` of the batch step in the chain of ``_input_dataset``, verified with TensorFlow 2.15 to 2.21.
    """
    step = dataset
    for _ in range(_CHAIN_LIMIT):
        if "Batch" in type(step).__name__ and hasattr(step, "_batch_size"):
            return _whole(step._batch_size)
        step = getattr(step, "_input_dataset", None)
        if step is None:
            return None
    return None


def describe_model(model: Any) -> dict[str, Any]:
    """``model_name``, ``parameter_count`` (None before the model is built) and ``optimizer``."""
    name = getattr(model, "name", None)
    return {
        "model_name": name if isinstance(name, str) else None,
        "parameter_count": parameter_count(model),
        "optimizer": _optimizer(model),
    }


def _optimizer(model: Any) -> str | None:
    """Class name of the optimizer; None if user code overrides ``compile``: Keras may hold an unused default."""
    compiles = getattr(type(model), "compile", None)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or getattr(compiles, "__module__", "").partition(".")[0] not in _KERAS:
        return None
    # With mixed precision the actual optimizer is wrapped.
    return type(getattr(optimizer, "inner_optimizer", None) or optimizer).__name__


def parameter_count(model: Any) -> int | None:
    """Number of parameters; None while the model is not built."""
    if not getattr(model, "built", False):
        return None
    weights = model.weights
    shapes = [tuple(weight.shape) for weight in weights]
    return sum(math.prod(int(size) for size in shape) for shape in shapes)


def first_leaf(value: Any) -> Any:
    """The first array of nested tuples, lists and dictionaries."""
    for _ in range(_CHAIN_LIMIT):
        if isinstance(value, Mapping) and value:
            value = next(iter(value.values()))
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            break
    return value


def dtype_name(value: Any) -> str | None:
    """Name of the dtype, such as ``float32``; None if there is none."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return None
    name = getattr(dtype, "name", None)
    return str(name if isinstance(name, str) else dtype)[:40]


def _is_array(value: Any) -> bool:
    if _module_root(value) in ("numpy", "tensorflow", "pandas", "jax", "jaxlib", "torch"):
        return hasattr(value, "shape")  # a torch DataLoader has none
    return "numpy" in sys.modules and issubclass(type(value), sys.modules["numpy"].ndarray)


def _module_root(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _sizes(value: Any) -> list[int | None]:
    shape = getattr(value, "shape", None)
    try:
        return [None if size is None else int(size) for size in tuple(shape or ())]
    except (TypeError, ValueError):
        return []  # a TensorShape of unknown rank


def _whole(number: Any) -> int | None:
    if number is None or isinstance(number, bool):
        return None
    try:
        return int(number)
    except (TypeError, ValueError):
        return None
