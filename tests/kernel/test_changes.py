"""What the guard changes in the user's process is the table in kernel/changes.py, and an unload undoes it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from types import SimpleNamespace

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.kernel.changes import CHANGES
from jupyter_tfguard.kernel.session import GuardSession
from jupyter_tfguard.kernel.startup import ShellNames
from tests.kernel.rig import GuardedKernel, works

Make = Callable[..., GuardedKernel]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="procfs shows what is there")

MOST_DESCRIPTORS = 12
LOOK = "from tests.kernel.marks import marks\nprint(marks())"


def marks(kernel: GuardedKernel) -> dict[str, str]:
    ran = kernel.run(LOOK)
    assert ran.error is None, ran.traceback
    found: dict[str, str] = ast.literal_eval(ran.stdout)
    return found


def different(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)}


def fits(name: str, patterns: set[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def test_a_guarded_kernel_differs_by_the_table_and_an_unload_undoes_it(new_kernel: Make) -> None:
    kernel = new_kernel(environment={"TFGUARD_DISABLE": "1"})
    works(kernel, "import keras, os; del os.environ['TFGUARD_DISABLE']")
    kernel.run("get_ipython().magics_manager.magics['line'].pop('tfguard')")
    works(kernel, LOOK)  # what it imports for the first time
    bare = marks(kernel)
    kernel.run("%load_ext tfguard")
    guarded = marks(kernel)
    found = different(bare, guarded)
    always = {mark for change in CHANGES for mark in change.marks}
    sometimes = {mark for change in CHANGES for mark in change.sometimes}
    assert {name for name in found if not fits(name, always | sometimes)} == set(), (
        "not in the table"
    )
    assert {mark for mark in always if not any(fits(name, {mark}) for name in found)} == set(), (
        "in the table, but not different"
    )
    taken = [
        sum(
            int(count)
            for name, count in one.items()
            if name.startswith("descriptor:") and name[-1] != "2"
        )
        for one in (bare, guarded)
    ]
    assert 0 < taken[1] - taken[0] <= MOST_DESCRIPTORS, taken

    kernel.run("%unload_ext tfguard")
    remains = {mark for change in CHANGES for mark in change.remains}
    assert {n for n in different(bare, marks(kernel)) if not fits(n, remains)} == set(), (
        "not undone"
    )


def test_each_step_of_the_table_is_a_method_of_the_guard() -> None:
    shell = SimpleNamespace(kernel=None, user_ns={})
    session = GuardSession(shell, TfGuard(), ShellNames(shell))
    for change in CHANGES:
        for step in ("install", "undo", "fork"):
            assert not getattr(change, step) or callable(change.method(step, session)), change.name
        assert change.undo or not change.marks or change.name in NO_UNDO, change.name


# Undone by another row: the end of the recording, the memory guard's end, and `fits`.
NO_UNDO = {"recording", "allocators", "training loops"}
