"""How old the newest sample of a kernel is when it dies, in sampling periods.

Real processes under a real watcher are killed at random instants; some are busy (10 samples a second), some idle (one), and
some hold their interpreter's lock in native code from before the first sample to the end. The age is the moment of death,
as the killer saw it (its ``waitid`` returned), minus the time of the newest row in the facts that the watcher hands on.

A watcher that samples exactly on time has ages spread evenly between 0 and 1: median 0.5, p99 0.99. What this machine
allows is shown beside: a bare process that does nothing but note the time every 0.1 s, and how old its last note is at the
same deaths. On a machine that is busy with other things that is more than 1, for anybody.

``python tests/benchmarks/sample_age.py [--count N] [--seed S] [--json]``
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import platform
import queue
import random
import signal
import statistics
import struct
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from jupyter_tfguard.watch.death import Death
from jupyter_tfguard.watch.process_witness import ProcessWitness
from jupyter_tfguard.watch.watcher import Watcher
from jupyter_tfguard.watch.witness import Kernel

BUSY, IDLE, HELD, TIMER = "busy", "idle", "GIL held", "bare timer"
PERIOD_SECONDS = {BUSY: 0.1, IDLE: 1.0, HELD: 0.1}
HELD_SECONDS = 60
# How long a process lives before it is killed.
LIVES_SECONDS = {BUSY: (1.0, 4.0), IDLE: (3.0, 7.0), HELD: (1.0, 60.0)}
ALIVE_COUNT = 24
_TIME = struct.Struct("<d")


class BareTimer:
    """A process that notes the time every 0.1 s on a page that is shared with it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._pid = os.fork()
        if self._pid == 0:
            self._note_forever()

    def _note_forever(self) -> None:
        planned = time.monotonic()
        while True:
            _TIME.pack_into(self._page, 0, time.time())
            planned = max(planned + PERIOD_SECONDS[BUSY], time.monotonic())
            time.sleep(max(0.0, planned - time.monotonic()))

    def age(self, moment: float) -> float:
        """Seconds from the last note to this Unix second."""
        return moment - float(_TIME.unpack_from(self._page, 0)[0])

    def stop(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


@dataclass
class Subject:
    """A process that is going to be killed.

    Attributes:
        kind: Busy, idle, or busy with its interpreter's lock held.
        kill_at: Monotonic seconds.
    """

    kind: str
    pid: int
    witness: ProcessWitness
    kill_at: float


def begin(kind: str, watcher: Watcher, number: int, lives_seconds: float) -> Subject:
    """Fork a process and watch it."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if kind == HELD:
            # PyDLL keeps the lock during the call: no Python of this process runs until it returns.
            while True:
                ctypes.PyDLL(None).sleep(HELD_SECONDS)
        while True:
            time.sleep(3600)
    is_busy = kind != IDLE
    witness = watcher.watch(pid, Kernel(f"{kind} {number}", is_busy=lambda: is_busy))
    return Subject(kind, pid, witness, time.monotonic() + lives_seconds)


def end(subject: Subject, watcher: Watcher, timer: BareTimer) -> tuple[float, float]:
    """Kill it; Unix seconds of its death, and the age of the bare timer's last note then."""
    os.kill(subject.pid, signal.SIGKILL)
    os.waitid(os.P_PID, subject.pid, os.WEXITED | os.WNOWAIT)
    died = time.time()
    note_age = timer.age(died)
    watcher.ended(subject.witness)
    os.waitpid(subject.pid, 0)
    return died, note_age


def ages(count: int, seed: int, folder: Path) -> dict[str, list[float]]:
    """Ages in periods by kind, `count` in all."""
    chance = random.Random(seed)
    handed: queue.Queue[Death] = queue.Queue()
    timer = BareTimer()
    notes: list[float] = []
    watcher = Watcher(folder, handed.put, lambda witness: None)
    kinds = [chance.choices((BUSY, IDLE, HELD), (6, 2, 2))[0] for _ in range(count)]
    died: dict[str, float] = {}
    alive: list[Subject] = []
    started = 0
    try:
        while started < count or alive:
            while started < count and len(alive) < ALIVE_COUNT:
                kind = kinds[started]
                lives = chance.uniform(*LIVES_SECONDS[kind])
                alive.append(begin(kind, watcher, started, lives))
                started += 1
            subject = min(alive, key=lambda s: s.kill_at)
            time.sleep(max(0.0, subject.kill_at - time.monotonic()))
            alive.remove(subject)
            when, note_age = end(subject, watcher, timer)
            died[subject.witness.kernel.kernel_id] = when
            notes.append(note_age / PERIOD_SECONDS[BUSY])
    finally:
        for subject in alive:
            os.kill(subject.pid, signal.SIGKILL)
            os.waitpid(subject.pid, 0)
        watcher.stop()
        timer.stop()
    found: dict[str, list[float]] = {kind: [] for kind in PERIOD_SECONDS}
    while not handed.empty():
        death = handed.get()
        kind = death.kernel_id.rpartition(" ")[0]
        last = death.facts.rows[-1][0]
        assert last is not None
        found[kind].append((died[death.kernel_id] - last) / PERIOD_SECONDS[kind])
    assert sum(map(len, found.values())) == count, "a death was not handed on"
    return found | {TIMER: notes}


def summary(values: list[float]) -> dict[str, float]:
    """Median and tail, in periods."""
    ordered = sorted(values)
    at = lambda part: ordered[min(len(ordered) - 1, int(part * len(ordered)))]  # noqa: E731
    return {
        "median": statistics.median(ordered),
        "p90": at(0.9),
        "p99": at(0.99),
        "worst": ordered[-1],
        "count": len(ordered),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Age of the newest sample at death, in periods")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    assert threading.active_count() == 1
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TFGUARD_DIR"] = folder
        found = ages(options.count, options.seed, Path(folder))
    table = {kind: summary(values) for kind, values in found.items() if values}
    table["all"] = summary([age for kind in PERIOD_SECONDS for age in found[kind]])
    if options.json:
        told = {"benchmark": "sample_age", "seed": options.seed, "ages": table}
        print(json.dumps(told | {"system": platform.platform(terse=True)}))
        return
    print("Age of the newest sample at death, in sampling periods (busy 0.1 s, idle 1 s)")
    print(f"{'kernel':12} {'median':>8} {'p90':>8} {'p99':>8} {'worst':>8} {'n':>6}")
    for kind, s in table.items():
        line = " ".join(f"{s[name]:8.3f}" for name in ("median", "p90", "p99", "worst"))
        print(f"{kind:12} {line} {s['count']:6.0f}")


if __name__ == "__main__":
    main()
