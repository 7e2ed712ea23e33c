"""A server in a pid namespace of its own, as in a container: by which numbers the driver tells processes decides what is known."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.watch.gpu.gpu_cards import OTHER_NUMBERS
from tests.conftest import without_pytest
from tests.rigs.nvml.library import environ
from tests.rigs.nvml.scenario import GIB, Scenario, holding, one_gpu
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

_UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@dataclass
class Inside:
    """The server in there.

    Attributes:
        pid: The kernel's, as it is in there. outside_pid: the same, as the machine counts.
    """

    process: subprocess.Popen[str]
    scenario: Scenario
    path: Path
    pid: int
    outside_pid: int

    def shows(self, *holders: tuple[int, int]) -> None:
        """The driver lists these processes from now on."""
        holding(self.scenario.cards[0], holders, 0)
        self.scenario.save(self.path)

    def until(self, seen: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the panel is told that of the card."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        stdin, stdout = self.process.stdin, self.process.stdout

        def shown() -> dict[str, Any]:
            stdin.write("\n")
            stdin.flush()
            devices: list[dict[str, Any]] = json.loads(stdout.readline())
            return devices[0] if devices and seen(devices[0]) else {}

        return wait_until(shown, "the card to be seen so")


def _outside_pid(inner: int) -> int:
    """The machine's number of a process that is `inner` in the other namespace."""
    own = os.readlink("/proc/self/ns/pid")
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            numbers = next(r for r in status.read_text().splitlines() if r.startswith("NSpid:"))
            there = os.readlink(status.parent / "ns" / "pid")
        except (OSError, StopIteration):
            continue
        if there != own and numbers.split()[-1] == str(inner):
            return int(status.parent.name)
    raise AssertionError("the kernel is not to be seen from outside")


@pytest.fixture
def inside(standin: Path, cuda_library: Path, tmp_path: Path) -> Iterator[Inside]:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    if subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no pid namespace can be made here")
    scenario = one_gpu(holders=())
    path = scenario.save(tmp_path / "scenario.txt")
    (tmp_path / "home").mkdir()
    command = [sys.executable, "-m", "tests.rigs.pid_namespace", tmp_path / "home", cuda_library]
    process = subprocess.Popen(
        [*_UNSHARE, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=without_pytest(os.environ) | environ(standin, path),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pid = int(process.stdout.readline())
        yield Inside(process, scenario, path, pid, _outside_pid(pid))
    finally:
        process.stdin.close()
        try:
            process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def test_a_kernel_is_known_by_the_numbers_of_its_namespace_and_not_by_those_of_the_machine(
    inside: Inside,
) -> None:
    # A driver of today translates the numbers for whoever asks.
    inside.shows((inside.pid, 5 * GIB))
    device = inside.until(lambda told: bool(told["holders"]))
    assert [h["used_bytes"] for h in device["holders"]] == [5 * GIB]
    assert device["holders"][0]["notebook_path"] == "inside.ipynb"
    # One that does not: the machine's number is nobody's in here, or somebody else's.
    assert inside.outside_pid != inside.pid
    inside.shows((inside.outside_pid, 6 * GIB))
    device = inside.until(lambda told: told["memory_used_bytes"] == 6 * GIB)
    device = inside.until(lambda told: told["holders"] is None)
    assert (device["note"], device["other_bytes"]) == (OTHER_NUMBERS, None)
    # One that hides them.
    inside.shows()
    inside.scenario.cards[0].memory_used = 6 * GIB
    inside.scenario.save(inside.path)
    device = inside.until(lambda told: told["note"] not in (None, OTHER_NUMBERS))
    assert device["holders"] is None
    assert "inside a container it may hide them" in device["note"]
