"""One flat graph from a graph with function calls: the body takes the place of the call.

Of a condition the branch with more nodes is taken. Loops stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .program import BATCHES, TensorSize

_CALLS = {"PartitionedCall": "f", "StatefulPartitionedCall": "f"}
_BRANCHES = {
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
}


class Inliner:
    """Replaces calls by their bodies.

    Attributes:
        functions: Definition of each function, by name.
    """

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self.functions = functions

    def count_nodes(self, nodes: Iterable[Any]) -> int:
        """Number of these nodes, and of the nodes of all functions that they call: every branch, body and condition."""
        return sum(
            1 + sum(self.count_nodes(self.functions[one].node_def) for one in _callees(node))
            for node in nodes
        )

    def inlined(self, graph_def: Any) -> Any:
        """A copy of a ``GraphDef`` without calls and conditions."""
        found = type(graph_def)(versions=graph_def.versions)
        renamed: dict[str, str] = {}
        for node in graph_def.node:
            name = self._callee(node)
            if name is None:
                found.node.add().CopyFrom(node)
            else:
                self._add_body(found, node, name, renamed)
        for node in found.node:
            for place, given in enumerate(node.input):
                while given in renamed:
                    given = renamed[given]
                node.input[place] = given
        return found

    def body(self, name: str, shapes: list[Any] | None = None) -> tuple[Any, list[str]]:
        """The flat graph of a function, and the names of the tensors that it returns."""
        definition = self.functions[name]
        convert = sys.modules["tensorflow.python.framework.function_def_to_graph"]
        graph_def, names = convert.function_def_to_graph_def(definition, input_shapes=shapes)
        returned = [names[definition.ret[one.name]] for one in definition.signature.output_arg]
        # A node of its own for each result: calls inside of the body may be replaced.
        for number, tensor in enumerate(returned):
            node = graph_def.node.add(name=f"returned_{number}", op="Identity", input=[tensor])
            node.attr["T"].type = definition.signature.output_arg[number].type
        for place, control in enumerate(definition.control_ret.values()):
            graph_def.node.add(name=f"ran_{place}", op="NoOp", input=[f"^{control}"])
        return self.inlined(graph_def), [f"returned_{number}:0" for number in range(len(returned))]

    def _callee(self, node: Any) -> str | None:
        if node.op in _CALLS:
            return str(node.attr[_CALLS[node.op]].func.name)
        if node.op in _BRANCHES:
            names = [node.attr[branch].func.name for branch in _BRANCHES[node.op]]
            return str(max(names, key=lambda name: self.count_nodes(self.functions[name].node_def)))
        return node.op if node.op in self.functions else None

    def _add_body(self, found: Any, call: Any, name: str, renamed: dict[str, str]) -> None:
        body, returned = self.body(name)
        arguments = [given for given in call.input if not given.startswith("^")]
        arguments = arguments[call.op in _BRANCHES :]  # without the condition
        controls = [given for given in call.input if given.startswith("^")]
        parameters = [one.name for one in self.functions[name].signature.input_arg]
        for parameter, given in zip(parameters, arguments, strict=True):
            renamed[f"{call.name}/{parameter}:0"] = renamed[f"{call.name}/{parameter}"] = given
            renamed[f"^{call.name}/{parameter}"] = "^" + given.partition(":")[0]
        for node in body.node:
            if node.name in parameters:
                continue
            new = found.node.add()
            new.CopyFrom(node)
            new.name = f"{call.name}/{node.name}"
            inputs = [_prefixed(given, call.name) for given in node.input]
            del new.input[:]
            new.input.extend(inputs or controls)
        for number, tensor in enumerate(returned):
            renamed[f"{call.name}:{number}"] = f"{call.name}/{tensor}"
        if returned:
            renamed[call.name] = renamed[f"{call.name}:0"]
        # What waits for the call waits for all that it does.
        done = [f"^{call.name}/{node.name}" for node in body.node if node.name.startswith("ran_")]
        done += [f"^{call.name}/{tensor[:-2]}" for tensor in returned]
        found.node.add(name=call.name, op="NoOp", input=done)


def _callees(node: Any) -> list[str]:
    """Names of the functions that a node calls."""
    return [
        str(value.func.name)
        for value in node.attr.values()
        if value.WhichOneof("value") == "func" and value.func.name
    ]


def _prefixed(given: str, prefix: str) -> str:
    return f"^{prefix}/{given[1:]}" if given.startswith("^") else f"{prefix}/{given}"


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


_BATCH, _FREE, _CONTRACTED, _REDUCED = range(4)
_SWAPPED = {
    _BATCH: 0,
    _CONTRACTED: 1,
    _FREE: 2,
    _REDUCED: 3,
}  # the product can read a matrix transposed


def transposed(equation: str) -> tuple[tuple[int, ...], bool]:
    """Places of the operands that are copied, and True if the result is copied too.

    Args:
        equation: As in ``tf.einsum``, with an output. One with an ellipsis or a repeated label counts as not copied.
    """
    given, _, result = equation.replace(" ", "").partition("->")
    operands = given.split(",")
    if "." in equation or any(len(set(one)) < len(one) for one in (*operands, result)):
        return (), False
    numbers = {label: number for number, label in enumerate(dict.fromkeys("".join(operands)))}
    kinds = {label: _kind(label, operands, result) for label in numbers}
    copied = tuple(
        place for place, one in enumerate(operands) if not _is_in_order(one, kinds, numbers)
    )
    found = sorted((one for one in numbers if kinds[one] == _BATCH), key=numbers.__getitem__)
    for place, operand in enumerate(operands):
        free = [one for one in operand if kinds[one] == _FREE]
        found += sorted(free, key=numbers.__getitem__) if place in copied else free
    return copied, len(operands) > 1 and "".join(found) != result


def _kind(label: str, operands: list[str], result: str) -> int:
    count = sum(label in one for one in operands)
    if label in result:
        return _BATCH if count == len(operands) and count > 1 else _FREE
    return _CONTRACTED if count > 1 else _REDUCED


def _is_in_order(operand: str, kinds: dict[str, int], numbers: dict[str, int]) -> bool:
    keys = [(kinds[label], numbers[label]) for label in operand]
    swapped = [_SWAPPED[kinds[label]] for label in operand]
    return keys == sorted(keys) or swapped == sorted(swapped)
