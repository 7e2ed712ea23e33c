"""What the guard changes in the user's process, in a kernel with the guard beside one without it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

import pytest

from tests.kernel.rig import GuardedKernel

Make = Callable[..., GuardedKernel]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="procfs shows descriptors")

MOST_DESCRIPTORS = 12
# What is open at two moments: the guard opens some files for a few microseconds.
DESCRIPTORS = """
import os, time
def opened():
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
        except OSError:
            pass
    return found
first = opened()
time.sleep(0.3)
print(sorted(name for _, name in first & opened()))
"""


def test_it_takes_at_most_twelve_descriptors(kernel: GuardedKernel, new_kernel: Make) -> None:
    bare = new_kernel(environment={"TFGUARD_DISABLE": "1"})
    without = ast.literal_eval(bare.run(DESCRIPTORS).stdout)
    guarded = ast.literal_eval(kernel.run(DESCRIPTORS).stdout)
    assert any("recordings/" in name for name in guarded)
    assert 0 < len(guarded) - len(without) <= MOST_DESCRIPTORS, guarded
