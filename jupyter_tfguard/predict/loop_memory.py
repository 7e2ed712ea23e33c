"""Memory of a loop: what one iteration needs, and what every iteration keeps for the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .program import Op, Program

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
