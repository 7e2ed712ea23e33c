"""Deaths on a GPU, played in real kernels of a real server; the driver's library is a stand-in, everything above it is not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.report import text
from tests.conftest import private_jupyter
from tests.crash.conftest import Kernel, RecordingServer
from tests.rigs.nvml.library import SCENARIO
from tests.rigs.nvml.scenario import GIB, Card, Scenario, holding, uuid
from tests.rigs.waiting import wait_until

# With the time of now, as TensorFlow writes it, and aborting as it does.
SAY = (
    "import ctypes, os, time\n"
    "for severity, line in {lines!r}:\n"
    "    stamp = f'{{severity}}0000 00:00:{{time.time():.6f}}    4711 ' if severity else ''\n"
    "    os.write(2, (stamp + line + chr(10)).encode())\n"
    "while not os.path.exists({may_end!r}): time.sleep(0.01)\n"
    "ctypes.PyDLL(None).abort()"
)
NO_ROOM = (
    "F",
    "cuda_driver.cc:1011] failed to allocate 2.00GiB: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
)
# What TensorFlow 2.21 prints when its pool of 74.5 GiB has no room for 8 GiB; shortened where it repeats itself.
POOL_LIMIT, IN_USE = 80_000_000_000, 76_000_000_000


class Machine:
    """A server on a machine with GPUs, and what they show."""

    def __init__(self, server: RecordingServer, cuda: Path, scenario: Scenario, path: Path) -> None:
        self.server = server
        self.cuda = cuda
        self.scenario = scenario
        self.path = path
        self.started: list[Kernel] = []

    def save(self) -> None:
        self.scenario.save(self.path)

    def start(self, name: str) -> Kernel:
        """A kernel for a notebook of its own."""
        self.started.append(Kernel(self.server, name))
        return self.started[-1]

    def use(self, kernel: Kernel) -> None:
        """The kernel loads the driver's library, as TensorFlow does."""
        assert kernel.run(f"import ctypes; ctypes.CDLL({str(self.cuda)!r})")["status"] == "ok"

    def hold(self, card: int, *holders: tuple[int, int]) -> None:
        holding(self.scenario.cards[card], holders)
        self.save()

    def devices(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.get("tfguard/api/status")["gpus"]["devices"]
        return found

    def until(self, seen: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Wait until the server has seen it."""

        def shown() -> list[dict[str, Any]]:
            found = self.devices()
            return found if found and seen(found) else []

        return wait_until(shown, "the server to see it")

    def until_held(self, card: int, *kernels: Kernel) -> None:
        wanted = {kernel.id for kernel in kernels}
        self.until(
            lambda found: (
                len(found) > card
                and wanted <= {h["kernel_id"] for h in found[card]["holders"] or ()}
            )
        )


@pytest.fixture
def machine(standin: Path, cuda_library: Path, tmp_path: Path) -> Iterator[Machine]:
    """With two cards. A server of its own: what a driver told of its cards stays in mind for minutes."""
    scenario = Scenario([a_card(0), a_card(1)])
    path = scenario.save(tmp_path / "scenario.txt")
    (tmp_path / "work").mkdir()
    with private_jupyter(tmp_path, **{"LD_LIBRARY_PATH": standin, SCENARIO: path}):
        server = RecordingServer(tmp_path / "work", tmp_path / "tfguard")
        found = Machine(server, cuda_library, scenario, path)
        yield found
        for kernel in found.started:
            kernel.close()
        server.stop()


@pytest.fixture
def keep() -> Callable[[Kernel], tuple[Any, str]]:
    """The report of a death, as data and as people read it; ``pytest -rP`` shows its text."""

    def of(kernel: Kernel) -> tuple[Any, str]:
        report = kernel.report()
        printed = text.render(report)
        print(printed)
        return report, printed

    return of


Keep = Callable[[Kernel], tuple[Any, str]]


def a_card(index: int) -> Card:
    return Card(name="NVIDIA A100 80GB", uuid=uuid(index), bus=f"00000000:4{index}:00.0")


def dies(kernel: Kernel, *lines: tuple[str, str], may_end: Path = Path("/")) -> None:
    """Have the kernel write these lines, and abort once there is a file `may_end`."""
    kernel.start(SAY.format(lines=lines, may_end=str(may_end)))


def causes(report: Any) -> list[str]:
    return [report["cause"], *(f["cause"] for f in report["other_findings"])]


def test_the_notebook_that_held_the_card_is_named(machine: Machine, keep: Keep) -> None:
    other, ours = machine.start("train_b"), machine.start("ours")
    machine.use(other)
    machine.use(ours)
    machine.hold(0, (other.pid, 70 * GIB), (ours.pid, 2 * GIB))
    machine.until_held(0, other, ours)
    dies(ours, NO_ROOM)
    report, printed = keep(ours)
    assert report["cause"] == "gpu_oom_other_process"
    assert "train_b" in report["title"]
    assert "70.0 GiB of 80.0 GiB" in " ".join(printed.split())
    assert "Shut down the kernel of" in printed


def test_a_card_that_fell_off_the_bus_is_the_cause(
    machine: Machine, keep: Keep, tmp_path: Path
) -> None:
    ours = machine.start("lost")
    machine.use(ours)
    machine.hold(0, (ours.pid, 9 * GIB))
    machine.until_held(0, ours)
    may_end = tmp_path / "may-end"
    failed = "cuda_executor.cc:77] failed to synchronize: CUDA_ERROR_UNKNOWN: unknown error"
    dies(ours, ("E", failed), may_end=may_end)
    machine.scenario.xid(0, 79)
    machine.scenario.lose(0)
    machine.save()
    machine.until(lambda found: found[0]["lost"])
    may_end.touch()
    report, printed = keep(ours)
    assert report["cause"] == "gpu_hardware_xid"
    assert "Xid 79" in printed
    first, second = machine.until(lambda found: found[0]["lost"])
    assert [a["severity"] for a in first["alarms"]][:1] == ["error"]
    assert (second["lost"], second["alarms"]) == (False, [])


class TestNotBlamed:
    def test_a_kill_beside_a_fault(self, machine: Machine, keep: Keep) -> None:
        ours = machine.start("killed")
        machine.use(ours)
        machine.hold(0, (ours.pid, 9 * GIB))
        machine.until_held(0, ours)
        machine.scenario.xid(0, 79)
        machine.save()
        machine.until(lambda found: bool(found[0]["alarms"]))
        os.kill(ours.pid, signal.SIGKILL)
        report, _ = keep(ours)
        assert report["cause"] == "sigkill_unattributed"

    def test_nobody_where_processes_cannot_be_identified(
        self, machine: Machine, keep: Keep
    ) -> None:
        ours, other = machine.start("inside"), machine.start("neighbour")
        machine.use(ours)
        machine.use(other)
        # As a container sees it: numbers of the machine outside, which nobody has here.
        machine.hold(0, (4_100_000, 70 * GIB), (4_100_001, 2 * GIB))
        device, _ = machine.until(lambda found: bool(found[0]["note"]))
        assert device["holders"] is None
        assert device["other_bytes"] is None
        assert device["memory_used_bytes"] == 72 * GIB
        assert "cannot be identified here" in device["note"]
        dies(ours, NO_ROOM)
        report, printed = keep(ours)
        assert report["cause"] == "gpu_oom"
        assert "gpu_oom_other_process" not in causes(report)
        assert "cannot be identified here" in printed
