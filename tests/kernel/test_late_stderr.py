"""Deaths of real kernels in the middle of their native words, by the same ways as in the rig of many deaths."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel
from tests.rigs.deaths import kinds
from tests.rigs.late_stderr import ended_as

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="deaths of Linux")

Make = Callable[..., GuardedKernel]
ROOT = Path(__file__).parents[2]
CELL = """
import sys
sys.path.insert(0, {root!r})
from tests.rigs.deaths import kinds, write_natively
kind = next(kind for kind in kinds() if kind.name == {name!r})
for number in range(3000):
    write_natively(b"line %06d of the last native words\\n" % number)
kind.die()
"""
CHOSEN = ("fatal line", "double free", "abort in a thread", "stack overflow", "kill", "exit")


@pytest.mark.parametrize("name", CHOSEN)
def test_a_kernel_loses_neither_words_nor_stack(new_kernel: Make, name: str) -> None:
    kind = next((kind for kind in kinds() if kind.name == name), None)
    if kind is None:
        pytest.skip("this system does not have it")
    kernel = new_kernel()
    ended = kernel.die_watched(CELL.format(root=str(ROOT), name=name))
    recorded = kernel.recording()
    assert ended_as(kind, ended), (ended, recorded.fault_text)
    said = re.search(f"(?:{kind.says})\\Z", recorded.stderr_tail)
    assert said is not None, recorded.stderr_tail[-300:]
    words = recorded.stderr_tail[: said.start()]
    written = "".join(f"line {n:06d} of the last native words\n" for n in range(3000))
    assert words == written[-len(words) :]
    assert len(words) > 60_000
    assert bool(recorded.fault_text) == bool(kind.fault)
    assert kind.stack in recorded.fault_text
