"""Real processes to watch, and a real memory limit where one can be set here."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.memory.groups import MemoryGroup, memory_groups
from jupyter_tfguard.metrics import Metric, Unit
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.watch.crash.crash import Crash
from jupyter_tfguard.watch.gpu.gpu_map import GpuMap
from jupyter_tfguard.watch.live import live
from jupyter_tfguard.watch.live.live import LiveReader
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel
from jupyter_tfguard.watch.watcher import Watcher
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

from .gpu_rig import Machine

MIB = 1024**2
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def made_groups() -> Iterator[list[Path]]:
    """Memory groups to be removed after the processes in them have ended."""
    made: list[Path] = []
    yield made
    for directory in made:
        wait_until(lambda d=directory: _removed(d))


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:  # the last process is still on its way out
        return False
    return True


@pytest.fixture
def start(made_groups: list[Path]) -> Iterator[Start]:
    """Starts `code` in Python and waits for its first line of output."""
    started: list[subprocess.Popen[bytes]] = []

    def run(code: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield run
    for process in started:
        with contextlib.suppress(OSError):
            process.kill()
        with contextlib.suppress(OSError):
            process.communicate()


class Watch:
    """A watcher whose crashes are collected."""

    def __init__(self, recordings: Path) -> None:
        self.crashes: queue.Queue[Crash] = queue.Queue()
        self.gone: queue.Queue[MonitoredKernel] = queue.Queue()
        self.watcher = Watcher(recordings, self.crashes.put, self.gone.put)

    def begin(self, pid: int, **kernel: object) -> MonitoredKernel:
        monitored = self.watcher.watch(pid, Kernel("kernel-1", **kernel))  # type: ignore[arg-type]
        wait_until(lambda: monitored.before is not None)
        return monitored

    def crash(self) -> Crash:
        return self.crashes.get(timeout=DEADLINE_SECONDS)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    found = Watch(tmp_path / "recordings")
    yield found
    found.watcher.stop()


@pytest.fixture
def limited_group(made_groups: list[Path]) -> Callable[[int], MemoryGroup]:
    """Makes a memory group with a limit below this process's own; skips where that is not permitted."""

    def make(limit_bytes: int) -> MemoryGroup:
        try:
            own = memory_groups(os.getpid())[0]
            directory = Path(own.directory) / f"tfguard-test-{uuid.uuid4().hex[:8]}"
            directory.mkdir()
            made_groups.append(directory)
            name = "memory.limit_in_bytes" if own.version == 1 else "memory.max"
            (directory / name).write_text(str(limit_bytes))
        except (OSError, SourceUnavailable) as bad:
            reason = f"no memory group can be made here: {bad}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        path = f"{own.path.rstrip('/')}/{directory.name}"
        return MemoryGroup(path, str(directory), own.version, own=True)

    return make


def enter(group: MemoryGroup, pid: int) -> None:
    (Path(group.directory) / "cgroup.procs").write_text(str(pid))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Processes that the driver may list, some of them kernels."""
    found = Machine(tmp_path)
    yield found
    found.close()


@pytest.fixture
def gpu_map(machine: Machine) -> GpuMap:
    """Joins GPUs with those kernels."""
    return GpuMap(lambda: machine.monitored_kernels, machine.check)


@pytest.fixture
def recording(tmp_path: Path, data_folder: Path) -> Iterator[Recording]:
    """Of this process, as a kernel writes it."""
    identity = ProcessIdentity.of(os.getpid())
    assert identity is not None
    metric = Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "test")
    found = Recording(tmp_path / "recordings", identity, {"kernel_id": "k"}, [metric])
    yield found
    found.close()


@pytest.fixture
def reader(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveReader]:
    """Of that recording, which reads whenever it is asked."""
    monkeypatch.setattr(live, "_READ_EVERY_SECONDS", 0.0)
    found = LiveReader(recording.folder.path)
    yield found
    found.close()
