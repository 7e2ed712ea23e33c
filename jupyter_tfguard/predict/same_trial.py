"""What decides the result of a trial beside its batch size. Where both parts are equal, a trial need not be made again."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from ..training.plan import leaves
from .bound import flat_layers, slots_per_weight
from .graph import is_of_keras


def model_structure(model: Any) -> tuple[Any, ...]:
    """What decides the memory of a model: its layers, if they are Keras' own and form a graph; else the model itself."""
    layers = flat_layers(model)
    outputs = [_output_shapes(layer) for layer in layers]
    if not layers or not all(outputs) or not all(is_of_keras(type(layer)) for layer in layers):
        return (weakref.ref(model),)
    optimizer = getattr(model, "optimizer", None)
    parts = tuple((_config(layer), shape) for layer, shape in zip(layers, outputs, strict=True))
    return type(model), parts, type(optimizer), slots_per_weight(optimizer), str(model.loss)


def data_shapes(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Shapes of one sample and dtypes of the arrays; the declared elements of a dataset."""
    values = leaves([arguments.get(name) for name in ("x", "y", "sample_weight")])
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
