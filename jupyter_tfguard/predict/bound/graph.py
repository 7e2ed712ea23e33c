"""The layers of a built Keras model in call order, with the sizes of their inputs and outputs.

Covers Functional and Sequential models of Keras 3 and Keras 2 (TensorFlow 2.15, tf_keras), including nested ones. Does
not cover subclassed models: their ``call`` is ordinary Python code, so the sizes in it are unknown.

Source: ``_nodes_by_depth`` of Functional, identical in Keras 2.15 to 3.15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...training.plan import item_bytes, leaves

_KERAS = ("keras", "tf_keras")


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of a tensor.

    Attributes:
        fixed_bytes: Bytes independent of the batch size.
        sample_bytes: Additional bytes for each sample of the batch.
        is_known: False if a dimension other than the batch is undefined; it counts as 1.
        shape: The shape in Keras.
    """

    fixed_bytes: int
    sample_bytes: int
    is_known: bool
    shape: tuple[int | None, ...]

    @classmethod
    def of(cls, tensor: Any) -> Size:
        """The size of a symbolic Keras tensor."""
        shape = tuple(None if size is None else int(size) for size in tensor.shape)
        total = item_bytes(tensor.dtype)
        for size in shape[1:]:
            total *= 1 if size is None else size
        is_known = None not in shape[1:]
        if shape and shape[0] is not None:
            return cls(total * shape[0], 0, is_known, shape)
        return cls(0, total, is_known, shape)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a layer. Tensors are identified by ``id()``."""

    layer: Any
    inputs: tuple[tuple[int, Size], ...]
    outputs: tuple[tuple[int, Size], ...]


def calls(model: Any) -> Iterator[Call] | None:
    """All layer calls, inputs before outputs; None if the model has no graph or overrides ``call``.

    The iterator raises AttributeError and TypeError if this version of Keras stores its graph differently.
    """
    graph = graph_of(model)
    if graph is None:
        return None
    by_depth = graph._nodes_by_depth
    return (_call(node) for depth in sorted(by_depth, reverse=True) for node in by_depth[depth])


def graph_of(model: Any) -> Any:
    """The model's Functional graph; None if there is none."""
    if not is_of_keras(getattr(type(model), "call", None)):
        return None
    inner = getattr(model, "_functional", None)  # in Keras 3's Sequential
    found = model if inner is None else inner
    return found if getattr(found, "_nodes_by_depth", None) else None


def is_of_keras(function: Any) -> bool:
    """True for a function defined in Keras."""
    return getattr(function, "__module__", "").partition(".")[0] in _KERAS


def _call(node: Any) -> Call:
    layer = getattr(node, "operation", None)
    if layer is not None:
        given = node.arguments.keras_tensors
    else:  # Keras 2
        layer, given = node.layer, node.keras_inputs
    return Call(layer, _sized(given), _sized(leaves(node.outputs)))


def _sized(tensors: Any) -> tuple[tuple[int, Size], ...]:
    return tuple((id(tensor), Size.of(tensor)) for tensor in tensors)
