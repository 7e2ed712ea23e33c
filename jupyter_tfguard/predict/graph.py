"""The layers of a built Keras model in the order of their calls, with the sizes of what goes in and comes out.

Covers Functional and Sequential models of Keras 3 and Keras 2 (TensorFlow 2.15, tf_keras), also as layers of each other. The
``call`` of a subclass is ordinary Python code, and nobody can read its sizes off it.

Source: ``_nodes_by_depth`` of Functional, the same in Keras 2.15 to 3.15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .sizes import item_bytes, leaves

_KERAS = ("keras", "tf_keras")


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of a tensor.

    Attributes:
        fixed_bytes: Whatever the batch is.
        sample_bytes: For each sample of the batch more.
        is_known: False when a dimension besides the batch is open; it counts as 1.
        shape: As Keras has it.
    """

    fixed_bytes: int
    sample_bytes: int
    is_known: bool
    shape: tuple[int | None, ...]

    @classmethod
    def of(cls, tensor: Any) -> Size:
        """Of a symbolic tensor of Keras."""
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
    """One call of a layer. Tensors are named by their ids."""

    layer: Any
    inputs: tuple[tuple[int, Size], ...]
    outputs: tuple[tuple[int, Size], ...]


def calls(model: Any) -> Iterator[Call] | None:
    """Every call of a layer, inputs before outputs; None when the model has no graph, or runs other code than that.

    The iterator raises AttributeError and TypeError where this version of Keras keeps its graph in another way.
    """
    graph = graph_of(model)
    if graph is None:
        return None
    by_depth = graph._nodes_by_depth
    return (_call(node) for depth in sorted(by_depth, reverse=True) for node in by_depth[depth])


def graph_of(model: Any) -> Any:
    """The Functional model inside; None when there is none."""
    if not is_of_keras(getattr(type(model), "call", None)):
        return None
    inner = getattr(model, "_functional", None)  # of Keras 3's Sequential
    found = model if inner is None else inner
    return found if getattr(found, "_nodes_by_depth", None) else None


def is_of_keras(function: Any) -> bool:
    """True for a function that Keras defines itself."""
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
