"""Kernels that die and are started again as fast as possible, under the real tracker and the real watcher.

The kernel manager is a stand-in with the interface that the tracker uses, because Jupyter's own restarter looks once in
three seconds and gives up after five deaths. Processes, pidfds, threads and event loop are real. Each life is killed at a
random moment, some before they are watched; each is started again at once, so that process ids, descriptors and kernel ids
are used again all the time.

``python tests/rigs/restart_storm.py [--kernels N] [--deaths N] [--seed S] [--json]``
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.server.kernels import KernelTracker
from jupyter_tfguard.watch.death import Death
from jupyter_tfguard.watch.watcher import Watcher

STUB = ("sleep", "600")
PATIENCE_SECONDS = 60.0


class StubManager:
    """What the tracker knows of a kernel manager, around one process."""

    kernel_name = "stub"
    shutting_down = False

    def __init__(self) -> None:
        self.execution_state = "idle"
        self.provisioner = SimpleNamespace(pid=None, process=None)

    def start(self) -> None:
        """Begin a new life."""
        process = subprocess.Popen(STUB, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.provisioner.process, self.provisioner.pid = process, process.pid

    def add_restart_callback(self, callback: Callable[[], None], event: str) -> None:
        """There is no restarter here: the tracker has its own eyes."""

    def remove_restart_callback(self, callback: Callable[[], None], event: str) -> None:
        """See above."""


class StubApp:
    """What the tracker knows of a server application."""

    root_dir = "/"

    def __init__(self, count: int) -> None:
        self.managers = {str(uuid.uuid4()): StubManager() for _ in range(count)}
        self.kernel_manager = SimpleNamespace(
            list_kernel_ids=lambda: list(self.managers), get_kernel=self.managers.__getitem__
        )
        self.session_manager = SimpleNamespace(list_sessions=list)
        self.event_logger = SimpleNamespace()


@dataclass
class Storm:
    """What happened.

    Attributes:
        killed: Processes that were watched and then killed.
        told: Deaths that the watcher handed on, by process.
        first, last: Descriptors, threads and memory when all kernels ran, at the start and at the end.
    """

    killed: set[ProcessIdentity] = field(default_factory=set)
    told: Counter[ProcessIdentity] = field(default_factory=Counter)
    wrong_exit: int = 0
    unwatched: int = 0
    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    left_descriptors: int = 0
    left_threads: int = 0
    seconds: float = 0.0

    @property
    def lost(self) -> int:
        """Deaths of watched kernels that nobody was told of."""
        return len(self.killed - set(self.told))

    @property
    def twice(self) -> int:
        """Deaths told more than once."""
        return sum(count > 1 for count in self.told.values())

    def numbers(self) -> dict[str, float]:
        """For people and machines."""
        return {
            "deaths": len(self.killed),
            "lost": self.lost,
            "twice": self.twice,
            "never_killed_but_told": len(set(self.told) - self.killed),
            "wrong_exit": self.wrong_exit,
            "killed_unwatched": self.unwatched,
            **{f"{name}_first": value for name, value in self.first.items()},
            **{f"{name}_last": value for name, value in self.last.items()},
            "descriptors_left": self.left_descriptors,
            "threads_left": self.left_threads,
            "seconds": self.seconds,
        }


def usage() -> dict[str, int]:
    """Descriptors, threads and anonymous memory of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "memory_bytes": int(status.partition("RssAnon:")[2].split()[0]) * 1024,
    }


async def run(kernels: int, deaths: int, seed: int, folder: Path) -> Storm:
    """Let so many kernels die so many times in all."""
    storm, chance = Storm(), random.Random(seed)
    app = StubApp(kernels)

    def take(death: Death) -> None:
        storm.told[death.identity] += 1
        exit_ = death.facts.exit
        storm.wrong_exit += exit_ is None or exit_.signal != "SIGKILL"

    before = usage()
    watcher = Watcher(folder, take, lambda witness: tracker.gone(witness))
    tracker = KernelTracker(app, watcher, lambda identity: None, lambda: None)
    tracker.start()
    began = time.monotonic()
    try:
        for manager in app.managers.values():
            manager.start()
        tracker.reconcile()
        await asyncio.sleep(1.5)
        storm.first = usage()
        while len(storm.killed) < deaths:
            await _kill_one(chance.choice(list(app.managers.values())), watcher, storm)
            if chance.random() < 0.5:
                tracker.reconcile()
            await asyncio.sleep(chance.choice((0, 0, 0, 0.001, 0.01)))
        tracker.reconcile()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while storm.lost and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.5)
        storm.last = usage()
    finally:
        storm.seconds = time.monotonic() - began
        await tracker.stop()
        await asyncio.to_thread(watcher.stop)
        for manager in app.managers.values():
            manager.provisioner.process.kill()
            manager.provisioner.process.wait()
    after = usage()
    storm.left_descriptors = after["descriptors"] - before["descriptors"]
    storm.left_threads = sum(thread.name.startswith("tfguard") for thread in threading.enumerate())
    return storm


async def _kill_one(manager: StubManager, watcher: Watcher, storm: Storm) -> None:
    """Kill the process and begin the next life; the loop may or may not have seen the end by then."""
    process = manager.provisioner.process
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    if any(witness.identity == identity for witness in watcher.witnesses):
        storm.killed.add(identity)
    else:
        storm.unwatched += 1
    process.send_signal(signal.SIGKILL)
    # The pidfd is readable before the process is reaped; the watcher reads how it ended without reaping it.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    while any(witness.identity == identity for witness in watcher.witnesses):
        await asyncio.sleep(0)
    process.wait()
    manager.start()


def main() -> None:
    """Storm and print."""
    parser = argparse.ArgumentParser(description="Kernels that die and are started again and again")
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--deaths", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TFGUARD_DIR"] = folder
        storm = asyncio.run(run(options.kernels, options.deaths, options.seed, Path(folder)))
    numbers = storm.numbers()
    if options.json:
        print(json.dumps(numbers))
        return
    for name, value in numbers.items():
        print(f"{name:24} {value:14,.6g}")


if __name__ == "__main__":
    main()
