"""One flat graph from a graph with function calls: the body takes the place of the call.

Of a condition the branch with more nodes is taken. Loops stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

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
