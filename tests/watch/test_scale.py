"""Many kernels at once: descriptors, shared readings, the beat of the samples, bursts of crashes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.collectors import resident
from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.watch.crash.crash import Crash
from jupyter_tfguard.watch.live.live import Live
from jupyter_tfguard.watch.monitored import Kernel
from jupyter_tfguard.watch.polling import SamplingThread
from jupyter_tfguard.watch.watcher import Watcher
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

from .conftest import Watch

Stubs = Callable[[int], list[int]]


@pytest.fixture
def stubs() -> Iterator[Stubs]:
    """Starts small processes that do nothing; their ids."""
    started: list[subprocess.Popen[bytes]] = []

    def start(count: int) -> list[int]:
        for _ in range(count):
            started.append(subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL))
        return [process.pid for process in started[-count:]]

    yield start
    for process in started:
        process.kill()
    for process in started:
        process.wait()


@pytest.fixture
def no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a sandbox that does not permit them."""

    def refuse(*_: object) -> Any:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "pidfd_open", refuse)


def test_all_descriptors_of_a_kernel_come_back(watch: Watch, stubs: Stubs) -> None:
    [first, *pids] = stubs(21)
    watch.begin(first)
    before = len(os.listdir("/proc/self/fd"))
    monitored_kernels = [
        watch.watcher.watch(pid, Kernel("k", is_busy=lambda: False)) for pid in pids
    ]
    wait_until(lambda: all(w.before for w in monitored_kernels))
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before + 2 * len(pids))
    for monitored in monitored_kernels:
        watch.watcher.drop(monitored)
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before)


@pytest.mark.usefixtures("no_pidfd")
def test_kernels_are_watched_without_pidfds(watch: Watch, stubs: Stubs) -> None:
    victim, other = (watch.watcher.watch(pid, Kernel(str(pid))) for pid in stubs(2))
    assert victim.handle.fileno() is None
    wait_until(lambda: all(w.before and len(w.history.rows) > 5 for w in (victim, other)))
    os.kill(victim.identity.pid, signal.SIGKILL)
    assert watch.gone.get(timeout=DEADLINE_SECONDS) is victim
    watch.watcher.ended(victim)
    facts = watch.crash().facts
    assert facts.exit is not None
    assert facts.exit.signal == "SIGKILL"
    assert facts.peak_bytes
    assert facts.rows


def test_a_later_process_with_the_same_id_is_not_sampled() -> None:
    pid = os.getpid()  # of a process that starts just now Linux may count no page yet
    start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert resident.ResidentSize(pid, start).read() > 0
    with pytest.raises(SourceUnavailable, match="has ended"):
        resident.ResidentSize(pid, start - 1)


class FakeMonitored:
    def __init__(self, busy: bool) -> None:
        self.kernel = SimpleNamespace(is_busy=lambda: busy)
        self.live = Live()
        self.is_busy = True
        self.count = 0

    def sample(self, tick: int, host: object) -> bool:
        self.count += 1
        return True


def test_of_200_kernels_the_busy_ones_are_sampled_ten_times_a_second_the_others_once() -> None:
    monitored_kernels: Any = tuple(FakeMonitored(number < 10) for number in range(200))
    sampler = SamplingThread(lambda: monitored_kernels, lambda w: None, 0.1, 1.0)
    sampler._known = set(monitored_kernels)
    now = 1000.0
    for _ in range(200):
        now += sampler._round(monitored_kernels, now)
    assert {w.count for w in monitored_kernels if w.is_busy} == {200}
    assert {w.count for w in monitored_kernels if not w.is_busy} == {20}
    monitored_kernels = tuple(FakeMonitored(False) for _ in range(200))
    assert (
        sampler._round(monitored_kernels, now) == 0.25
    )  # soon enough to notice a cell that starts


def test_deaths_of_one_moment_are_all_handed_on(tmp_path: Path, stubs: Stubs) -> None:
    free = threading.Event()
    seen: list[Crash] = []

    def receive(crash: Crash) -> None:
        free.wait(DEADLINE_SECONDS)
        seen.append(crash)

    watcher = Watcher(tmp_path, receive, lambda monitored: None)
    monitored_kernels = [watcher.watch(pid, Kernel(str(pid))) for pid in stubs(40)]
    wait_until(lambda: all(w.before for w in monitored_kernels))
    kept = len(os.listdir("/proc/self/fd"))
    for monitored in monitored_kernels:
        os.kill(monitored.identity.pid, signal.SIGKILL)
    for monitored in monitored_kernels:
        wait_until(lambda w=monitored: not w.handle.is_running())
        watcher.ended(monitored)
    # Closed at once, not when the report is written.
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= kept - 80)
    free.set()
    wait_until(lambda: len(seen) == 40)
    counts = Counter(crash.identity for crash in seen)
    assert set(counts.values()) == {1}
    assert all(crash.facts.exit.signal == "SIGKILL" for crash in seen if crash.facts.exit)
    watcher.stop()
