"""Kernels of a real server really die, each in another way, and each gets the right cause: the table of kinds.py."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.crash.kinds import KINDS
from tests.crash.settings import MIB

if TYPE_CHECKING:
    from tests.crash.conftest import Kernel
    from tests.crash.scene import Scene, Theatre

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and cgroups of Linux")

BY_NAME = {scene.name: scene for scene in KINDS}


@pytest.mark.parametrize("scene", KINDS, ids=str)
def test_the_cause_is_right(theatre: Theatre, scene: Scene) -> None:
    played = theatre.played(scene)
    assert played.right, played.printed
    assert played.report is not None
    assert scene.confidence == played.confidence, played.printed
    assert played.report["chips"][0] == scene.chip, played.printed
    assert scene.says in played.printed
    assert played.wrong_certain == []
    assert not scene.play or played.report["activity"][0]["value"].startswith("["), played.printed


def test_there_are_many_kinds_each_with_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(KINDS) >= 40
    assert len({scene.causes for scene in KINDS}) >= 14


def test_a_plain_kill_from_outside_does_not_blame_memory(theatre: Theatre) -> None:
    printed = theatre.played(BY_NAME["SIGKILL, from outside"]).printed.lower()
    assert "killed with sigkill" in printed
    assert "out of memory" not in printed
    assert "out-of-memory" not in printed


def test_the_python_stack_of_a_segfault_is_in_the_report(theatre: Theatre) -> None:
    report = theatre.played(BY_NAME["SIGSEGV, a null pointer"]).report
    assert report is not None
    stack = "\n".join(report["python_stack"])
    assert "Segmentation fault" in stack
    assert "in poke" in stack
    assert any("in string_at" in fact["text"] for fact in report["evidence"])


def test_the_memory_limit_is_reported_with_its_numbers(theatre: Theatre) -> None:
    played = theatre.played(BY_NAME["memory limit of the group"])
    assert played.report is not None
    memory = played.report["memory"]
    assert memory["limit_bytes"] == 400 * MIB
    assert memory["peak_bytes"] > 0.8 * 400 * MIB
    assert "after the start of cell [2]" in played.printed


def test_the_death_of_a_child_is_reported_while_the_kernel_lives(theatre: Theatre) -> None:
    report = theatre.played(BY_NAME["a child killed at the memory limit"]).report
    assert report is not None
    assert report["kernel_alive"] is True


def test_tensorflows_version_is_in_the_report(theatre: Theatre) -> None:
    report = theatre.played(BY_NAME["TensorFlow: an unknown flag in XLA_FLAGS"]).report
    assert report is not None
    assert "tensorflow" in report["versions"]


def test_the_end_of_stderr_of_an_abort_are_in_the_report(kernel: Kernel) -> None:
    kernel.start(
        "import ctypes, os\nos.write(2, b'engine: cannot go on\\n')\nctypes.CDLL(None).abort()"
    )
    report = kernel.report()
    assert "engine: cannot go on" in report["stderr_tail"]
    assert len(kernel.entries()) == 1
