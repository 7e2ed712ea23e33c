"""Memory that a training step touches: a simulation of its operations, of the life of its tensors, and of the pool.

Operations run on as many workers as TensorFlow uses. A worker goes on with what has just become ready, so a long branch is
done before the next one begins. The time of each is a rough guess that differs from seed to seed: the order matters, and the
real order is not known either.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from .pool import POOL_BYTES, Chunk, Pool
from .program import Op, Program

_STEPS = 6  # at most; most fits need no more memory after the third
# Batches that wait in the pipeline of the data, besides that of the running step.
WAITING_BATCHES = 4
_JITTER = 0.5  # of the logarithm of the time of an operation
_OVERHEAD_BYTES = 20_000  # time of an operation without work, in bytes moved
_HEAVY_FACTOR = 20  # convolutions and products work longer for each byte
_HEAVY = ("Conv", "MatMul", "Einsum", "Depthwise")
# The result may take the memory of an input that nothing else needs.
_IN_PLACE = {"Add", "AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "Maximum", "Minimum", "AddN"}
_IN_PLACE |= {"BiasAdd", "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Sigmoid", "Tanh", "Neg"}
_IN_PLACE |= {"ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "LeakyReluGrad", "SigmoidGrad"}
_IN_PLACE |= {"TanhGrad", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Softmax", "Erf", "Pow"}
_IN_PLACE |= {"Softplus", "Reciprocal", "SquaredDifference", "Abs", "Sign", "SqrtGrad", "RsqrtGrad"}
# An initializer makes random numbers, scales and shifts them: three tensors, of which the last becomes the variable.
_INITIALIZER_COPIES = 2
_SURELY_MORE = 1.1
# Of other free memory of the pool the share that a fit can use: it is in pieces.
_FREE_SHARE = 0.8
_CHANGES = {"AssignAddVariableOp", "AssignSubVariableOp"}


@dataclass(slots=True)
class _Buffer:
    """Memory of one tensor, or of several that share it."""

    size: int
    users: int
    chunks: list[Chunk] = field(default_factory=list)
    small_bytes: int = 0
    total_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Touched:
    """Memory that a fit touches beyond its variables.

    Attributes:
        pool_bytes: In the pool.
        small_bytes: Peak of the tensors that malloc allocates.
        live_bytes: Peak of all tensors in use at the same time.
    """

    pool_bytes: int
    small_bytes: int
    live_bytes: int


class Simulation:
    """One program at one batch size.

    Args:
        program: The training step.
        batch_size: Number of samples in a batch.
        free_bytes: Memory that the pool has used before and now holds free.
        copies_bytes: Copies of whole arrays; divided here as a batch is.
        batch_count: Batches of the data, if known: no more can wait.
        has_pool: False if malloc has all tensors.

    Attributes:
        data_bytes: The copies, and all batches that exist at the same time.
    """

    def __init__(
        self,
        program: Program,
        batch_size: int,
        free_bytes: int = 0,
        copies_bytes: int = 0,
        batch_count: int | None = None,
        has_pool: bool = True,
    ) -> None:
        self._ops = program.ops
        self._sizes = [size.bytes(batch_size) for size in program.sizes]
        self._variables = {name: size.bytes(batch_size) for name, size in program.variables.items()}
        self._existing = program.existing
        self._free_bytes = free_bytes
        self._pool_bytes = POOL_BYTES if has_pool else sys.maxsize
        self._batch = [self._sizes[tensor] for tensor in program.data]
        batch_bytes = sum(self._batch)
        self._copies = [copies_bytes * size // max(1, batch_bytes) for size in self._batch]
        self._waiting = min(WAITING_BATCHES, max(0, (batch_count or WAITING_BATCHES + 1) - 1))
        self.data_bytes = sum(self._copies) + (self._waiting + 1) * batch_bytes
        for tensor in program.data:
            self._sizes[tensor] = 0  # a part of the pipeline
        self._loops = {
            number: LoopMemory.of(op, batch_size) for number, op in enumerate(self._ops) if op.loop
        }
        self._uses = [0] * len(self._sizes)
        self._followers: list[list[int]] = [[] for _ in self._ops]
        for number, op in enumerate(self._ops):
            for tensor in op.inputs:
                self._uses[tensor] += 1
            for before in op.waits_for:
                self._followers[before].append(number)
        self._costs = [self._cost(number) for number in range(len(self._ops))]

    def _left_by_initializers(self) -> int:
        """Free memory of the pool after the existing variables were created by initializers, with nothing before."""
        used = highest = 0
        for name, size in self._variables.items():
            if name in self._existing and size >= POOL_BYTES:
                highest = max(highest, used + size * (1 + _INITIALIZER_COPIES))
                used += size
        return highest - used

    def run(self, seed: int, workers: int) -> Touched:
        """Simulate the first steps of a fit."""
        return _SimulatedFit(self, random.Random(seed), workers).result()

    def _cost(self, number: int) -> float:
        op = self._ops[number]
        moved = sum(self._sizes[tensor] for tensor in (*op.inputs, *op.outputs))
        if number in self._loops:
            moved += 20 * self._loops[number].total_bytes
        heavy = _HEAVY_FACTOR if any(part in op.kind for part in _HEAVY) else 1
        return float(_OVERHEAD_BYTES + heavy * moved)


class _SimulatedFit:
    """One simulated fit."""

    def __init__(self, what: Simulation, chance: random.Random, workers: int) -> None:
        self._what = what
        self._chance = chance
        self._workers = workers
        self._pool = Pool()
        self._small = self._most_small = self._live = self._most_live = 0
        sizes = what._variables
        self._variables = {}
        left = what._left_by_initializers()
        is_as_built = left <= _SURELY_MORE * what._free_bytes
        for name, size in sizes.items():
            if name in what._existing:
                copies = [self._new(size, 1) for _ in range(_INITIALIZER_COPIES * is_as_built)]
                self._variables[name] = self._new(size, 1)
                for one in copies:
                    self._release(one)
        rest = what._free_bytes - left * is_as_built
        if rest > 0:
            self._release(self._new(int(_FREE_SHARE * rest), 1))
        self._before = self._pool.touched_bytes()
        self._small = self._most_small = self._live = self._most_live = 0
        for size in what._copies:
            self._new(size, 1)
        batches = deque(self._new_batch() for _ in range(what._waiting))
        for name, size in sizes.items():
            if name not in self._variables:
                self._variables[name] = self._new(size, 1)
        settled = -1
        for _ in range(_STEPS):
            batches.append(self._new_batch())
            self._step()
            for buffer in batches.popleft():
                self._release(buffer)
            before, settled = settled, self._pool.touched_bytes()
            if settled == before:
                break

    def result(self) -> Touched:
        touched = self._pool.touched_bytes() - self._before
        return Touched(touched, self._most_small, self._most_live)

    def _new_batch(self) -> list[_Buffer]:
        return [self._new(size, 1) for size in self._what._batch]

    def _step(self) -> None:
        what, chance = self._what, self._chance
        waiting = [len(op.waits_for) for op in what._ops]
        ready = deque(number for number, count in enumerate(waiting) if not count)
        self._buffers: dict[int, _Buffer] = {}
        busy: list[tuple[float, int, list[_Buffer]]] = []
        now = 0.0
        while ready or busy:
            while ready and len(busy) < self._workers:
                number = ready.popleft()
                temporary = self._start(number)
                time = what._costs[number] * chance.lognormvariate(0, _JITTER)
                heapq.heappush(busy, (now + time, number, temporary))
            now, number, temporary = heapq.heappop(busy)
            self._finish(number, temporary)
            new = []
            for follower in what._followers[number]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    new.append(follower)
            ready.extendleft(reversed(new))

    def _start(self, number: int) -> list[_Buffer]:
        """Allocate what an operation needs; returns what it needs only while it runs."""
        what, buffers = self._what, self._buffers
        op = what._ops[number]
        kind, uses = op.kind, what._uses
        if number in what._loops:
            return self._start_loop(op, what._loops[number])
        if op.variable is not None and self._access(op):
            return []
        if kind in RENAMES and op.inputs:
            self._share(op.outputs[0], buffers[op.inputs[0]])
            return []
        if kind in _IN_PLACE:
            size = what._sizes[op.outputs[0]]
            for given in op.inputs:
                buffer = buffers[given]
                if buffer.users == op.inputs.count(given) and buffer.size == size and size:
                    self._share(op.outputs[0], buffer)
                    return []
        is_constant = kind == "Const"
        for tensor in op.outputs:
            size = 0 if is_constant else what._sizes[tensor]
            buffers[tensor] = self._new(size, uses[tensor] + 1)
        if kind == "TensorListFromTensor" and op.inputs:
            source = what._sizes[op.inputs[0]]
            self._hold(buffers[op.outputs[0]], source, 1)
        return [self._new(what._sizes[tensor], 1) for tensor in op.copied]

    def _access(self, op: Op) -> bool:
        """Read or change a variable; False for an operation of another kind."""
        current = self._variables[op.variable or ""]
        if op.kind == "ReadVariableOp":
            self._share(op.outputs[0], current)
        elif op.kind == "AssignVariableOp":
            given = self._buffers[op.inputs[-1]]
            given.users += 1
            self._variables[op.variable or ""] = given
            self._release(current)
        elif op.kind in _CHANGES:
            if current.users > 1:  # the old value is still in use: the change needs a copy
                self._variables[op.variable or ""] = self._new(current.size, 1)
                self._release(current)
        else:
            return False
        return True

    def _start_loop(self, op: Op, loop: LoopMemory) -> list[_Buffer]:
        for place, tensor in enumerate(op.outputs):
            if place in loop.fixed:
                self._share(tensor, self._buffers[op.inputs[place]])
            else:
                size = self._what._sizes[tensor]
                self._buffers[tensor] = self._new(size, self._what._uses[tensor] + 1)
        temporary = [self._new(size, 1) for size in loop.temporary]
        for place, pairs in loop.kept.items():
            for size, count in pairs:
                self._hold(self._buffers[op.outputs[place]], size, count)
        return temporary

    def _finish(self, number: int, temporary: list[_Buffer]) -> None:
        op = self._what._ops[number]
        for buffer in temporary:
            self._release(buffer)
        for tensor in op.inputs:
            self._release(self._buffers[tensor])
        for tensor in op.outputs:
            self._release(self._buffers[tensor])  # the operation itself used it while it ran

    def _share(self, tensor: int, buffer: _Buffer) -> None:
        buffer.users += self._what._uses[tensor] + 1
        self._buffers[tensor] = buffer

    def _new(self, size: int, users: int) -> _Buffer:
        buffer = _Buffer(size, users)
        self._hold(buffer, size, 1)
        return buffer

    def _hold(self, buffer: _Buffer, size: int, count: int) -> None:
        """Allocate memory that lives as long as a buffer."""
        if size >= self._what._pool_bytes:
            buffer.chunks += [self._pool.allocate(size) for _ in range(count)]
        else:
            buffer.small_bytes += size * count
            self._small += size * count
            self._most_small = max(self._most_small, self._small)
        buffer.total_bytes += size * count
        self._live += size * count
        self._most_live = max(self._most_live, self._live)

    def _release(self, buffer: _Buffer) -> None:
        buffer.users -= 1
        if buffer.users:
            return
        for chunk in buffer.chunks:
            self._pool.free(chunk)
        self._live -= buffer.total_bytes
        self._small -= buffer.small_bytes


# The result is the tensor of the first input.
RENAMES = {"Identity", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient"}
RENAMES |= {"CheckNumerics", "EnsureShape", "TensorListSetItem", "TensorListPushBack"}


@dataclass(frozen=True, slots=True)
class LoopMemory:
    """What a loop allocates.

    Attributes:
        temporary: Sizes of the tensors of one iteration that are in use at its peak.
        kept: Size and number of the tensors that each result holds when the loop is done.
        fixed: Results that are the same as the input.
    """

    temporary: tuple[int, ...]
    kept: dict[int, list[tuple[int, int]]]
    fixed: set[int]
    total_bytes: int

    @classmethod
    def of(cls, op: Op, batch_size: int) -> LoopMemory:
        loop = op.loop
        assert loop is not None
        sizes = [size.bytes(batch_size) for size in loop.body.sizes]
        count = loop.count.at(batch_size)
        roots = _roots(loop.body.ops)
        kept: dict[int, list[tuple[int, int]]] = {}
        held: set[int] = set()
        for place, tensors in loop.pushed.items():
            for tensor in tensors:
                root = roots.get(tensor, tensor)
                if root >= 0 and root not in held:
                    held.add(root)
                    kept.setdefault(place, []).append((sizes[tensor], count))
        temporary = tuple(_peak(loop.body, sizes, roots, held, batch_size))
        total = sum(temporary) + sum(a * b for pairs in kept.values() for a, b in pairs)
        return cls(temporary, kept, loop.fixed, total)


def _roots(ops: Sequence[Op]) -> dict[int, int]:
    """The tensor whose memory a tensor shares; -1 for a variable or an input of the loop."""
    found: dict[int, int] = {}
    for op in ops:
        if op.kind in ("ReadVariableOp", "Placeholder", "Const"):
            found.update((tensor, -1) for tensor in op.outputs)
        elif op.kind in RENAMES and op.inputs and op.outputs:
            found[op.outputs[0]] = found.get(op.inputs[0], op.inputs[0])
    return found


def _peak(
    body: Program, sizes: list[int], roots: dict[int, int], held: set[int], batch_size: int
) -> list[int]:
    """Sizes of the tensors in use at the peak of one iteration, one operation after the other."""
    last: dict[int, int] = {}
    for number, op in enumerate(body.ops):
        for tensor in op.inputs:
            last[roots.get(tensor, tensor)] = number
    live: dict[int, int] = {}
    peak: list[int] = []
    highest = total = 0
    for number, op in enumerate(body.ops):
        inner = list(LoopMemory.of(op, batch_size).temporary) if op.loop else []
        for tensor in op.outputs:
            if tensor not in roots and tensor not in held and sizes[tensor]:
                live[tensor] = sizes[tensor]
                total += sizes[tensor]
        if total + sum(inner) > highest:
            highest = total + sum(inner)
            peak = [*live.values(), *inner]
        for tensor in {roots.get(one, one) for one in (*op.inputs, *op.outputs)}:
            if tensor in live and last.get(tensor, number) <= number:
                total -= live.pop(tensor)
    return peak
