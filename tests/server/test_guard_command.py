"""How to load the guard into a kernel that has none: found once per process, in a thread."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.kernelspecs.command import STARTUP_FILE
from jupyter_tfguard.server.kernels import KernelTracker
from jupyter_tfguard.server.state import kernel_state
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel
from tests.rigs.waiting import wait_until_async

pytestmark = pytest.mark.quick


class Watcher:
    """Tracks processes that have been without a guard for long."""

    def __init__(self) -> None:
        self.monitored_kernels: list[MonitoredKernel] = []

    def watch(self, pid: int, kernel: Kernel) -> MonitoredKernel:
        found = MonitoredKernel(pid, kernel, SharedGroups())
        found.since -= 11
        self.monitored_kernels.append(found)
        return found

    def ended(self, monitored: MonitoredKernel, *_: Any, **__: Any) -> None:
        pass

    def drop(self, monitored: MonitoredKernel) -> None:
        pass


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    made = Watcher()
    yield made
    for monitored in made.monitored_kernels:
        monitored.close()


@pytest.fixture
def file_checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Name of the thread of each check for the startup file of a guard."""
    threads: list[str] = []
    is_file = Path.is_file

    def checked(path: Path, **kwargs: Any) -> bool:
        if path.name == STARTUP_FILE.name:
            threads.append(threading.current_thread().name)
        return is_file(path, **kwargs)

    monkeypatch.setattr(Path, "is_file", checked)
    return threads


async def test_it_is_looked_up_once_per_process_and_not_on_the_event_loop(
    watcher: Watcher, file_checks: list[str]
) -> None:
    argv = ["/other/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager = SimpleNamespace(
        kernel_name="k8",
        _kernel_spec=SimpleNamespace(language="python", argv=argv),
        provisioner=process_named(os.getpid()),
    )
    kernels = SimpleNamespace(list_kernel_ids=lambda: ["k"], get_kernel=lambda _: manager)
    app: Any = SimpleNamespace(kernel_manager=kernels)
    tracker = KernelTracker(app, watcher, lambda *_: None, lambda: None)  # type: ignore[arg-type]
    tracker._loop = asyncio.get_running_loop()

    def fix() -> str | None:
        tracker.reconcile()
        [view] = tracker.views()
        found: str | None = kernel_state(view)["guard"]["fix"]
        return found

    wanted = "jupyter tfguard enable --kernel k8"
    assert await wait_until_async(fix, "the command") == wanted
    once = len(file_checks)
    assert once > 0
    assert [fix() for _ in range(5)] == [wanted] * 5
    assert len(file_checks) == once
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        manager.provisioner = process_named(other.pid)
        fix()
        assert await wait_until_async(fix, "the command for the next process") == wanted
        assert len(file_checks) == 2 * once
        await tracker.stop()
        other.communicate(b"\n")
    assert threading.main_thread().name not in file_checks


def process_named(pid: int) -> SimpleNamespace:
    """A provisioner of a local process."""
    return SimpleNamespace(pid=pid, process=SimpleNamespace(pid=pid, poll=lambda: None))
