"""The number of updates that an optimizer has made, read from another thread without waiting for a device.

Covers Keras 3 on TensorFlow, JAX and torch, Keras 2 and tf_keras. Optimizers of torch keep no count that can be read at
no cost, so a loop of torch alone is not seen.
"""

from __future__ import annotations

import sys
from typing import Any

# The attribute of Keras 2 and 3 that holds the counter.
_COUNTER = "_iterations"
_LOCAL = "localhost"


def optimizer_name(optimizer: Any) -> str:
    """Class name of the optimizer; with mixed precision that of the wrapped one."""
    return type(vars(optimizer).get("inner_optimizer") or optimizer).__name__


def count_of(optimizer: Any) -> int | None:
    """The number of updates; None if it cannot be read now without waiting, or if there is none yet."""
    value = _value_of(optimizer)
    if value is None or is_on_accelerator(optimizer):
        return None
    if hasattr(value, "is_ready"):
        return _ready(value)
    if hasattr(value, "handle"):
        return _read(value)
    return int(value) if hasattr(value, "item") else None


def is_of_jax(optimizer: Any) -> bool:
    """True if the counter is an array of JAX, which can be read only between two steps."""
    return hasattr(_value_of(optimizer), "is_ready")


def count_now(optimizer: Any) -> int | None:
    """The number of updates, read from wherever it is, after the work before it; None if there is none."""
    value = None if optimizer is None else _value_of(optimizer)
    if value is None:
        return None
    return _read(value) if hasattr(value, "handle") else int(value)


def is_on_accelerator(optimizer: Any) -> bool:
    """True if the counter is not in the memory of this machine's CPU. Reading it would wait for the device."""
    value = _value_of(optimizer)
    if value is None:
        return False
    if hasattr(value, "is_ready"):  # JAX; a step that runs may own the array
        return not value.is_deleted() and any(one.platform != "cpu" for one in value.devices())
    device = getattr(value, "device", None)
    if device is not None and hasattr(device, "type"):  # torch
        return str(device.type) != "cpu"
    name = str(device or "")
    return "CPU" not in name.upper() or ("/job:" in name and _LOCAL not in name)


def _value_of(optimizer: Any) -> Any:
    """The counter as the backend's variable or array; None if there is none yet."""
    counter = vars(optimizer).get(_COUNTER)
    value = counter if counter is None else vars(counter).get("_value", counter)
    # With several replicas: the variable of the first one.
    primary = None if value is None else getattr(value, "_primary", None)
    return value if primary is None else primary


def _ready(array: Any) -> int | None:
    """The value of an array of JAX; None while a step computes it, or has taken it over."""
    try:
        return None if array.is_deleted() or not array.is_ready() else int(array)
    except RuntimeError:  # taken over between the two
        return None


def _read(variable: Any) -> int | None:
    """The value of a TensorFlow variable. One operation, outside of any graph, without the user's device scopes."""
    tensorflow, handle = sys.modules.get("tensorflow"), variable.handle
    # A handle without a value belongs to a graph.
    if tensorflow is None or not tensorflow.executing_eagerly() or not hasattr(handle, "numpy"):
        return None
    read = tensorflow.raw_ops.ReadVariableOp(resource=handle, dtype=variable.dtype)
    return int(read.numpy())
