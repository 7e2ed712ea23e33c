"""A training step as a list of operations, with the size of every tensor as a function of the batch size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

# The shapes are inferred for two batch sizes; every dimension is taken to be linear in the batch size.
BATCHES = (240, 480)


@dataclass(frozen=True, slots=True)
class Linear:
    """A number that depends linearly on the batch size."""

    at_zero: float
    slope: float = 0.0

    @classmethod
    def through(cls, first: float, second: float) -> Linear:
        """The line through the values at the two batch sizes."""
        slope = (second - first) / (BATCHES[1] - BATCHES[0])
        return cls(first - slope * BATCHES[0], slope)

    def at(self, batch_size: int) -> int:
        return max(0, round(self.at_zero + self.slope * batch_size))


@dataclass(frozen=True, slots=True)
class TensorSize:
    """Size of a tensor: bytes of one element, and its dimensions."""

    item_bytes: int
    dimensions: tuple[Linear, ...] = ()

    def bytes(self, batch_size: int) -> int:
        return self.item_bytes * math.prod(one.at(batch_size) for one in self.dimensions)


@dataclass(slots=True)
class Loop:
    """The body of a loop.

    Attributes:
        count: Number of iterations.
        pushed: For each result of the loop the tensors of the body that every iteration adds to it.
        fixed: Results that are the same as the input.
    """

    body: Program
    count: Linear
    pushed: dict[int, list[int]] = field(default_factory=dict)
    fixed: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Op:
    """One operation; tensors are given by their number in the program.

    Attributes:
        waits_for: Numbers of operations that must be done before.
        variable: Name of the variable that it reads or changes.
        copied: Tensors of which it makes a copy that lives as long as it runs.
    """

    kind: str
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    waits_for: tuple[int, ...]
    variable: str | None = None
    loop: Loop | None = None
    copied: tuple[int, ...] = ()


@dataclass(slots=True)
class Program:
    """Operations in an order in which they can run.

    Attributes:
        variables: Size of each variable.
        existing: Variables that exist before the first step.
        data: The tensors of a batch.
        unknown: Names of the operations whose results have an unknown size.
        node_count: Nodes of the graph and of all its functions.
    """

    ops: list[Op] = field(default_factory=list)
    sizes: list[TensorSize] = field(default_factory=list)
    variables: dict[str, TensorSize] = field(default_factory=dict)
    existing: set[str] = field(default_factory=set)
    data: list[int] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    node_count: int = 0


def layers_of(names: list[str], layer_names: set[str]) -> Iterator[str]:
    """The innermost layer of each operation; the last part of its name if it is in no layer."""
    for name in names:
        parts = name.split("/")
        # A scope that is used again has a number after the name of the layer.
        known = [
            one for part in parts for one in (part, part.rpartition("_")[0]) if one in layer_names
        ]
        yield known[-1] if known else parts[-1]
