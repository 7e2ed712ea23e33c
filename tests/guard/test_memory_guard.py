"""The guard's signal handler, without a kernel."""

from __future__ import annotations

import contextlib

import pytest

from jupyter_tfguard.guard.memory_guard import MemoryGuard
from jupyter_tfguard.guard.snapshot import Snapshot
from jupyter_tfguard.guard.words import CellFacts

pytestmark = pytest.mark.quick


class SignalsWithoutEnd:
    """A sampler that sends the next signal before the handler of the last one has read anything."""

    def __init__(self) -> None:
        self.guard = MemoryGuard({}, CellFacts)
        self.guard._sampler = self  # type: ignore[assignment]
        self.read_count = 0

    def exempt(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def snapshot(self) -> Snapshot:
        self.read_count += 1
        self.guard._main._on_signal(0, None)
        return Snapshot(tripped=True, delivered=False)


def test_a_signal_that_comes_while_its_handler_runs_does_not_nest() -> None:
    """On a busy machine the handler takes longer than the 10 ms between two signals."""
    sampler = SignalsWithoutEnd()
    for _ in range(2):
        sampler.guard._main._on_signal(0, None)
    assert sampler.read_count == 2
