"""Changes to a graph so that TensorFlow can infer its shapes without the variables and lists of the traced model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .program import BATCHES, TensorSize

LOOPS = {"While", "StatelessWhile"}
# Place of the shape of the elements among the inputs.
_ELEMENT_SHAPES = {"TensorListReserve": 0, "EmptyTensorList": 0, "TensorListFromTensor": 1}
_ELEMENT_SHAPES |= {"TensorListStack": 1, "TensorListPopBack": 1, "TensorListGetItem": 2}


def without_handles(
    graph_def: Any, handles: Mapping[str, str], shapes: Mapping[str, Any]
) -> dict[str, tuple[str, str]]:
    """Turn reads of variables into placeholders: imported handles do not know their shape.

    Returns:
        Kind and variable of the operations that read or change a variable, by name.
    """
    nodes = {node.name: node for node in graph_def.node}
    found = {}
    for node in graph_def.node:
        if not node.input or node.op in LOOPS or node.op == "Identity":
            continue
        root = _root(node.input[0], nodes)
        if root not in handles:
            continue
        variable = handles[root]
        found[node.name] = (node.op, variable)
        if node.op == "ReadVariableOp":
            controls = [one for one in node.input if one.startswith("^")]
            node.op = "Placeholder"
            del node.input[:]
            node.input.extend(controls)
            node.attr["shape"].shape.CopyFrom(shapes[variable])
        elif node.op == "VariableShape":
            node.op = "Const"
            del node.input[:]
            sizes = [dim.size for dim in shapes[variable].dim]
            proto = sys.modules["tensorflow"].make_tensor_proto(sizes, node.attr["out_type"].type)
            node.attr["dtype"].type = node.attr["out_type"].type
            node.attr["value"].tensor.CopyFrom(proto)
            del node.attr["out_type"]
    return found


def without_pops(graph_def: Any, popped: Mapping[str, TensorSize]) -> dict[str, tuple[Any, Any]]:
    """Turn reads of a list into placeholders, whose shape is that of the tensors that the forward loop added.

    Returns:
        The shapes of the new placeholders at the two batch sizes.
    """
    tensorflow = sys.modules["tensorflow"]
    found, renamed = {}, {}
    for node in graph_def.node:
        if node.op != "TensorListPopBack" or node.input[0].partition(":")[0] not in popped:
            continue
        size = popped[node.input[0].partition(":")[0]]
        renamed[f"{node.name}:1"] = node.name
        renamed[node.name] = renamed[f"{node.name}:0"] = node.input[0]
        found[node.name] = tuple(
            tensorflow.TensorShape([one.at(batch) for one in size.dimensions]) for batch in BATCHES
        )
        node.op = "Placeholder"
        del node.input[:]
        node.attr["dtype"].type = node.attr["element_dtype"].type
        del node.attr["element_dtype"]
    for node in graph_def.node:
        node.input[:] = [renamed.get(one, one) for one in node.input]
    return found


def _root(tensor: str, nodes: Mapping[str, Any]) -> str:
    """Name of the operation that a handle comes from."""
    name, _, number = tensor.partition(":")
    while name in nodes and (nodes[name].op == "Identity" or nodes[name].op in LOOPS):
        node = nodes[name]
        name, _, number = node.input[int(number or 0) if node.op in LOOPS else 0].partition(":")
    return name


def set_element_shapes(graph_def: Any, batch_size: int) -> None:
    """Set the unknown dimension of the elements of tensor lists: it is the batch in Keras's recurrent layers."""
    tensorflow = sys.modules["tensorflow"]
    nodes = {node.name: node for node in graph_def.node}
    names = [
        node.input[_ELEMENT_SHAPES[node.op]].partition(":")[0]
        for node in graph_def.node
        if node.op in _ELEMENT_SHAPES
    ]
    for name in names:
        node = nodes[name]
        if node.op != "Const":
            continue
        shape = constant(node)
        if shape.ndim:
            shape = [batch_size if size in (-1, *BATCHES) else size for size in shape]
            node.attr["value"].tensor.CopyFrom(
                tensorflow.make_tensor_proto(shape, node.attr["dtype"].type)
            )


def constant(node: Any) -> Any:
    return sys.modules["tensorflow"].make_ndarray(node.attr["value"].tensor)
