"""Describes a fit without reading its data: batch, shapes, model, optimizer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .plan import fit_plan, leaves

_KERAS = ("keras", "tf_keras", "tensorflow")


def describe_batch(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """``batch_size``, ``batch_place``, ``batch_shape`` (of the first input) and ``batch_dtype``; None for unknown values.

    Args:
        arguments: Arguments of ``fit``, ``evaluate`` or ``predict`` by name.
    """
    plan = fit_plan(arguments)
    x = next(leaves(arguments.get("x")), None)
    spec = getattr(x, "element_spec", None)
    leaf = x if spec is None else next(leaves(spec), None)
    found = {"batch_size": plan.batch_size, "batch_place": plan.place}
    if spec is None and plan.sample_count is None:
        return found | {"batch_shape": None, "batch_dtype": None}
    sizes = _sizes(leaf)
    first = plan.batch_size
    if spec is None and plan.sample_count is not None and first is not None:
        first = min(first, plan.sample_count)
    shape = [first, *sizes[1:]] if sizes else None
    return found | {"batch_shape": shape, "batch_dtype": dtype_name(leaf)}


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


def dtype_name(value: Any) -> str | None:
    """Name of the dtype, such as ``float32``; None if there is none."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return None
    name = getattr(dtype, "name", None)
    return str(name if isinstance(name, str) else dtype)[:40]


def _sizes(value: Any) -> list[int | None]:
    shape = getattr(value, "shape", None)
    try:
        return [None if size is None else int(size) for size in tuple(shape or ())]
    except (TypeError, ValueError):
        return []  # a TensorShape of unknown rank
