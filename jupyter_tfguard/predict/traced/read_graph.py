"""Reads a traced graph: TensorFlow infers its shapes for two batch sizes."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from .graph_def import (
    LOOPS,
    Inliner,
    constant,
    set_element_shapes,
    transposed,
    without_handles,
    without_pops,
)
from .program import BATCHES, Linear, Loop, Op, Program, TensorSize
from .trace import CannotTrace, Trace

_PUSHES = {"TensorListPushBack": 1, "TensorListSetItem": 2}  # place of the tensor
_NO_SIZE = {"resource", "variant", "string"}
# TensorFlow replaces a product with 1 and a sum with 0 by the other operand.
_NEUTRAL = {"Mul": 1, "AddV2": 0, "Add": 0}


def program_of(trace: Trace) -> Program:
    """The operations of a traced training step. Frees the trace.

    Raises:
        CannotTrace: The shapes in the graph do not allow other batch sizes.
    """
    graph = trace.graph
    tensorflow = sys.modules["tensorflow"]
    sizes, shapes, existing = _variables_of(trace)
    captured = {inner.op.name for _, inner in graph.captures}
    given = {
        one.op.name: tuple(_with_batch(one.shape, size) for size in BATCHES)
        for one in graph.inputs
        if one.op.name not in captured
    }
    results = [one.op.name for one in (*graph.inputs, *graph.outputs)]
    results += [one.name for one in graph.control_outputs]
    whole = graph.as_graph_def()
    library = type(whole)(library=whole.library, versions=whole.versions)
    inliner = Inliner({one.signature.name: one for one in library.library.function})
    node_count = inliner.count_nodes(whole.node)
    trace.free(_custom_gradients(whole))
    del graph
    try:
        with tensorflow.Graph().as_default():
            tensorflow.graph_util.import_graph_def(library, name="")
            flat = inliner.inlined(_needed(whole, results))
            del whole
            program = _Reader(inliner, shapes).read(flat, given, {name: name for name in sizes})
    except ValueError as error:
        first = str(error).splitlines()[0][:200]
        raise CannotTrace(f"it does not allow other batch sizes: {first}") from error
    program.variables, program.existing = sizes, existing
    program.data = [op.outputs[0] for op in program.ops if op.name in given]
    program.node_count = node_count
    return program


def _variables_of(trace: Trace) -> tuple[dict[str, TensorSize], dict[str, Any], set[str]]:
    """Size and shape of each variable, and those that exist already, by the name of their placeholder."""
    tensorflow = sys.modules["tensorflow"]
    handle_data = sys.modules["tensorflow.python.ops.handle_data_util"]
    created = {id(one.handle) for one in trace.new_variables}
    sizes, shapes, existing = {}, {}, set()
    for handle, inner in trace.graph.captures:
        if inner.dtype.name != "resource":
            continue
        found = handle_data.get_resource_handle_data(inner)
        if found is None or not found.shape_and_type:
            continue
        shape = shapes[inner.op.name] = found.shape_and_type[0].shape
        dtype = tensorflow.as_dtype(found.shape_and_type[0].dtype)
        dimensions = tuple(Linear(dim.size) for dim in shape.dim)
        sizes[inner.op.name] = TensorSize(_item_bytes(dtype), dimensions)
        if id(handle) not in created:
            existing.add(inner.op.name)
    return sizes, shapes, existing


class _Shapes(NamedTuple):
    """What is kept of an operation at one batch size.

    Attributes:
        outputs: Shapes of its results.
        inputs: For a loop, shapes of its inputs.
        iterations: Of a loop; None if unknown.
    """

    outputs: list[Any]
    inputs: list[Any]
    iterations: int | None


class _Reader:
    """Turns flat graphs into programs."""

    def __init__(self, inliner: Inliner, shapes: Mapping[str, Any]) -> None:
        self._inliner = inliner
        self._shapes = shapes  # of the variables
        # Size of the tensors that a loop adds to each of its results.
        self._pushed: dict[tuple[str, int], TensorSize] = {}

    def read(
        self,
        graph_def: Any,
        given: dict[str, tuple[Any, Any]],
        handles: dict[str, str],
        popped: Mapping[str, TensorSize] = MappingProxyType({}),
    ) -> Program:
        """The program of a graph.

        Args:
            graph_def: A graph without calls.
            given: Shapes of its placeholders at the two batch sizes.
            handles: Names of the variables by placeholder.
            popped: Size of the tensors in the lists that a placeholder stands for.
        """
        given = given | without_pops(graph_def, popped)
        reads = without_handles(graph_def, handles, self._shapes)
        # One graph after the other: each takes 3 kB per operation.
        with self._imported(graph_def, given, 1) as graph:
            larger = {op.name: self._shapes_of(op) for op in graph.get_operations()}
        del graph
        program = Program()
        numbers: dict[Any, int] = {}
        makers: dict[int, int] = {}  # number of the operation that makes a tensor
        places: dict[str, Sequence[int]] = {}
        with self._imported(graph_def, given, 0) as graph:
            for found in graph.get_operations():
                second = larger[found.name]
                outputs = tuple(
                    self._add_size(program, one, shape)
                    for one, shape in zip(found.outputs, second.outputs, strict=True)
                )
                numbers.update(zip((one.ref() for one in found.outputs), outputs, strict=True))
                kind, variable = reads.get(found.name, (found.type, None))
                needed = found.inputs
                if (place := _unchanged_input(found)) is not None:
                    kind, needed = "Identity", [found.inputs[place]]
                inputs = tuple(numbers[one.ref()] for one in needed if one.ref() in numbers)
                made = {numbers[one.ref()] for one in found.inputs if one.ref() in numbers}
                controls = [places.get(one.name, ()) for one in found.control_inputs]
                after = set(itertools.chain.from_iterable(controls))
                first = len(program.ops)
                if kind == "IdentityN":  # TensorFlow makes an Identity of each pair
                    for one, same in zip(inputs, outputs, strict=True):
                        waits = tuple(after | {makers[one]})
                        program.ops.append(Op("Identity", found.name, (one,), (same,), waits))
                else:
                    waits = tuple(after | {makers[one] for one in made})
                    program.ops.append(Op(kind, found.name, inputs, outputs, waits, variable))
                    program.ops[-1].copied = _copied(found, inputs, outputs)
                places[found.name] = range(first, len(program.ops))
                for number in places[found.name]:
                    makers.update(dict.fromkeys(program.ops[number].outputs, number))
                if kind in LOOPS:
                    program.ops[-1].loop = self._loop(found, second, program, handles)
            numbers.clear()  # its keys hold the tensors
        return program

    def _shapes_of(self, op: Any) -> _Shapes:
        is_loop = op.type in LOOPS
        return _Shapes(
            [one.shape for one in op.outputs],
            [one.shape for one in op.inputs] if is_loop else [],
            self._iterations(op) if is_loop else None,
        )

    @contextlib.contextmanager
    def _imported(
        self, graph_def: Any, given: dict[str, tuple[Any, Any]], version: int
    ) -> Iterator[Any]:
        """The graph at one of the two batch sizes; its memory is free afterwards."""
        tensorflow = sys.modules["tensorflow"]
        for node in graph_def.node:
            if node.name in given and node.op == "Placeholder":
                shape = given[node.name][version]
                node.attr["shape"].shape.CopyFrom(shape.as_proto())
            elif node.op in LOOPS:
                # With the shapes of the trace the results would have an unknown batch size.
                node.attr["output_shapes"].list.Clear()
        set_element_shapes(graph_def, BATCHES[version])
        graph = tensorflow.Graph()
        with graph.as_default():
            tensorflow.graph_util.import_graph_def(graph_def, name="")
        try:
            yield graph
        finally:
            # Without it only the garbage collector would free it.
            sys.modules["tensorflow.python.framework.ops"].dismantle_graph(graph)

    def _add_size(self, program: Program, tensor: Any, larger: Any) -> int:
        size = _size(tensor, larger)
        if size is None:
            program.unknown.append(tensor.op.name)
            size = _guessed(tensor, larger)
        program.sizes.append(size)
        return len(program.sizes) - 1

    def _loop(self, op: Any, second: _Shapes, program: Program, handles: dict[str, str]) -> Loop:
        name = op.node_def.attr["body"].func.name
        graph_def, returned = self._inliner.body(name)
        parameters = [one.name for one in self._inliner.functions[name].signature.input_arg]
        given, inner, popped = {}, {}, {}
        for parameter, tensor, larger in zip(parameters, op.inputs, second.inputs, strict=True):
            given[parameter] = (tensor.shape, larger)
            if tensor.dtype.name == "resource":
                root = tensor.op
                while root.type == "Identity":
                    root = root.inputs[0].op
                if root.name in handles:
                    inner[parameter] = handles[root.name]
            elif (tensor.op.name, tensor.value_index) in self._pushed:
                popped[parameter] = self._pushed[tensor.op.name, tensor.value_index]
        nodes = {one.name: one for one in graph_def.node}
        body = self.read(graph_def, given, inner, popped)
        program.unknown += [f"{op.name}/{one}" for one in body.unknown]
        count = self._count(op, second, program)
        loop = Loop(body, count)
        numbers = {one.name: one for one in body.ops}
        for place, tensor in enumerate(returned):
            source = nodes[tensor.partition(":")[0]]
            while source.op in _PUSHES or source.op in ("Identity", "AddN"):
                if source.op in _PUSHES:
                    pushed = numbers[source.name].inputs[_PUSHES[source.op]]
                    loop.pushed.setdefault(place, []).append(pushed)
                    if body.sizes[pushed].item_bytes:
                        self._pushed[op.name, place] = body.sizes[pushed]
                # A gradient is added to the list of the gradients so far: the gradient is last.
                last = source.input[-1 if source.op == "AddN" else 0]
                source = nodes[last.partition(":")[0]]
            if source.name == parameters[place]:
                loop.fixed.add(place)
        return loop

    def _count(self, op: Any, second: _Shapes, program: Program) -> Linear:
        """Iterations of a loop; 1 if unknown."""
        first = self._iterations(op)
        if first is None or second.iterations is None:
            program.unknown.append(op.name)
            return Linear(1)
        return Linear.through(first, second.iterations)

    def _iterations(self, op: Any) -> int | None:
        """The lowest number that the condition of a loop compares a counter with."""
        name = op.node_def.attr["cond"].func.name
        definition = self._inliner.functions[name]
        graph_def, _ = self._inliner.body(name)
        nodes = {node.name: node for node in graph_def.node}
        parameters = [one.name for one in definition.signature.input_arg]
        found: list[int | None] = []
        for node in graph_def.node:
            if node.op != "Less":
                continue
            limit = nodes[node.input[1].partition(":")[0]]
            while limit.op == "Identity":
                limit = nodes[limit.input[0].partition(":")[0]]
            if limit.op == "Const":
                found.append(int(constant(limit)))
            elif limit.name in parameters:
                found.append(self._value(op.inputs[parameters.index(limit.name)]))
        known = [one for one in found if one is not None and one >= 0]
        return min(known, default=None)

    def _value(self, tensor: Any) -> int | None:
        """A number that TensorFlow can work out without running the graph."""
        if tensor.op.type in LOOPS:  # the number of iterations of the loop in the forward pass
            return self._iterations(tensor.op)
        if tensor.op.type == "Identity":
            return self._value(tensor.op.inputs[0])
        session = sys.modules["tensorflow.python.client.pywrap_tf_session"]
        value = session.TF_TryEvaluateConstant_wrapper(
            tensor.graph._c_graph, tensor._as_tf_output()
        )
        return None if value is None else int(value)


def _unchanged_input(op: Any) -> int | None:
    """Place of the input that an operation returns as it is; None if it computes something."""
    if op.type not in _NEUTRAL:
        return None
    for place, other in ((0, op.inputs[1].op), (1, op.inputs[0].op)):
        is_number = other.type == "Const" and other.outputs[0].shape.rank == 0
        if is_number and constant(other.node_def) == _NEUTRAL[op.type]:
            return place
    return None


def _copied(op: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> tuple[int, ...]:
    """Tensors of which an operation makes a copy in another order."""
    if op.type != "Einsum":
        return ()
    places, is_result_copied = transposed(op.get_attr("equation").decode())
    return (*(inputs[place] for place in places), *outputs[: int(is_result_copied)])


def _size(tensor: Any, larger: Any) -> TensorSize | None:
    """Size from a tensor and its shape at the larger batch size; None if unknown."""
    item = _item_bytes(tensor.dtype)
    if not item:
        return TensorSize(0)
    ranks = (tensor.shape.rank, larger.rank)
    if None not in ranks and ranks[0] == ranks[1]:
        pairs = list(zip(tensor.shape, larger, strict=True))
        if not any(None in pair for pair in pairs):
            return TensorSize(item, tuple(Linear.through(*pair) for pair in pairs))
    is_shape = tensor.dtype.is_integer and ranks[0] in (None, 0, 1)
    return TensorSize(0) if is_shape else None


def _guessed(tensor: Any, larger: Any) -> TensorSize:
    """A guess: an unknown first dimension is the batch, others are 1."""
    item = _item_bytes(tensor.dtype)
    if tensor.shape.rank is None or tensor.shape.rank != larger.rank:
        return TensorSize(item)
    dimensions = [
        Linear.through(*pair) if None not in pair else Linear(1) if place else Linear(0, 1)
        for place, pair in enumerate(zip(tensor.shape, larger, strict=True))
    ]
    return TensorSize(item, tuple(dimensions))


def _custom_gradients(graph_def: Any) -> Iterator[str]:
    """Names of the custom gradients of a graph and its functions."""
    for nodes in (graph_def.node, *(one.node_def for one in graph_def.library.function)):
        for node in nodes:
            if "_gradient_op_type" in node.attr:
                yield node.attr["_gradient_op_type"].s.decode()


def _needed(graph_def: Any, results: Iterable[str]) -> Any:
    """The graph without operations whose results nothing uses; TensorFlow removes them too."""
    nodes = {node.name: node for node in graph_def.node}
    waiting, found = list(results), set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [one.lstrip("^").partition(":")[0] for one in nodes[name].input]
    kept = [node for node in graph_def.node if node.name in found]
    return type(graph_def)(node=kept, versions=graph_def.versions)


def _with_batch(shape: Any, size: int) -> Any:
    tensorflow = sys.modules["tensorflow"]
    return tensorflow.TensorShape([size, *shape[1:]]) if shape.rank else shape


def _item_bytes(dtype: Any) -> int:
    return 0 if dtype.name in _NO_SIZE else int(dtype.size)
