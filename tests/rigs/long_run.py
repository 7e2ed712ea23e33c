"""What the rigs with long counts share: pieces of work in forked processes.

A count is cut into pieces; each piece runs in a process of its own, whose death or standstill is itself a result: the
case it was at is counted under ``crashes`` or ``hangs``, and the rest of the piece runs again.

Not for Windows: it forks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import platform
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Totals = dict[str, Any]
FAILURES_KEPT = 20


class Progress:
    """The case a worker is at, on a page shared with its parent: readable after the worker was killed."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._words = memoryview(self._page).cast("Q")

    def at(self, case: int) -> None:
        """Say which case begins."""
        self._words[0] = case
        self._words[1] += 1

    def seen(self) -> tuple[int, int]:
        """The case, and a number that changes with each."""
        return self._words[0], self._words[1]

    def close(self) -> None:
        """Give the page back."""
        self._words.release()
        self._page.close()


Work = Callable[[int, int, Progress], Totals]


@dataclass
class _Worker:
    piece: tuple[int, int]
    pid: int
    pipe: int
    progress: Progress
    text: bytearray = field(default_factory=bytearray)
    last: tuple[int, int] = (0, 0)
    moved: float = 0.0
    hung: bool = False


def options(title: str, *, count: int, jobs: int = 1) -> argparse.ArgumentParser:
    """The options every rig has."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--count", type=int, default=count, help="how many; default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--jobs", type=int, default=jobs, help="processes; default %(default)s")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


def merge(total: Totals, more: Totals) -> None:
    """Add the numbers of one piece: sums, the highest of ``highest_*``, the first few of lists."""
    for name, value in more.items():
        if isinstance(value, dict):
            merge(total.setdefault(name, {}), value)
        elif isinstance(value, list):
            total[name] = (total.get(name, []) + value)[:FAILURES_KEPT]
        elif name.startswith("highest_"):
            total[name] = max(total.get(name, 0), value)
        else:
            total[name] = total.get(name, 0) + value


def long_run(
    work: Work,
    count: int,
    *,
    piece: int,
    jobs: int,
    stall_seconds: float = 30.0,
) -> Totals:
    """The totals over cases 0 .. `count`.

    Args:
        work: Called in a forked process with the first case, the one after the last, and its progress.
        piece: Cases for one process.
        stall_seconds: A worker that stays at one case this long hangs.
    """
    run = _Run(work, jobs, stall_seconds)
    with _ended_by_sigterm():
        return run.complete(count, piece)


class _Run:
    def __init__(self, work: Work, jobs: int, stall_seconds: float) -> None:
        self._work, self._jobs, self._stall = work, jobs, stall_seconds
        self._totals: Totals = {}

    def complete(self, count: int, piece: int) -> Totals:
        waiting = [(first, min(first + piece, count)) for first in range(0, count, piece)][::-1]
        workers: list[_Worker] = []
        began = time.monotonic()
        try:
            while waiting or workers:
                while waiting and len(workers) < self._jobs:
                    workers.append(self._start(waiting.pop()))
                for worker in self._ended(workers):
                    workers.remove(worker)
                    waiting += self._take(worker)
        finally:
            for worker in workers:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
        return self._totals | {"seconds": round(time.monotonic() - began, 1)}

    def _start(self, piece: tuple[int, int]) -> _Worker:
        ours, theirs = os.pipe()
        progress = Progress()
        progress.at(piece[0])
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            _run_piece(self._work, piece, progress, theirs)
        os.close(theirs)
        return _Worker(piece, pid, ours, progress, moved=time.monotonic())

    def _ended(self, workers: list[_Worker]) -> list[_Worker]:
        ready, _, _ = select.select([worker.pipe for worker in workers], [], [], 0.5)
        ended = []
        for worker in workers:
            if worker.pipe in ready:
                part = os.read(worker.pipe, 1 << 16)
                worker.text += part
                if not part:
                    ended.append(worker)
            seen = worker.progress.seen()
            if seen != worker.last:
                worker.last, worker.moved = seen, time.monotonic()
            elif not worker.hung and time.monotonic() - worker.moved > self._stall:
                worker.hung = True
                os.kill(worker.pid, signal.SIGKILL)
        return ended

    def _take(self, worker: _Worker) -> list[tuple[int, int]]:
        """Count what a worker found; the pieces that are to run again."""
        os.close(worker.pipe)
        _, status = os.waitpid(worker.pid, 0)
        case = worker.progress.seen()[0]
        worker.progress.close()
        first, end = worker.piece
        if status == 0:
            merge(self._totals, json.loads(bytes(worker.text)))
            return []
        if os.WIFEXITED(status):
            # What is tried may raise; this came from the rig itself.
            sys.exit(f"at case {case}: {bytes(worker.text).decode('utf-8', 'replace')}")
        how = "hangs" if worker.hung else "crashes"
        failure = {"case": case, how: f"signal {os.WTERMSIG(status)}"}
        merge(self._totals, {how: 1, "failures": [failure]})
        return [(a, b) for a, b in ((case + 1, end), (first, case)) if a < b]


def _run_piece(work: Work, piece: tuple[int, int], progress: Progress, pipe: int) -> None:
    """The life of a worker; never returns."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = 1
    try:
        text = json.dumps(work(*piece, progress))
        status = 0
    except BaseException:
        text = traceback.format_exc()
    with contextlib.suppress(OSError), open(pipe, "w", encoding="utf-8") as file:
        file.write(text)
    os._exit(status)


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the run, and no worker is left behind."""

    def end(_signal: int, _frame: object) -> None:
        sys.exit("ended from outside")

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show(totals: Totals, *, as_json: bool, bad: tuple[str, ...]) -> int:
    """Print the totals; the exit code: 1 when one of the numbers `bad` is not 0."""
    totals = totals | {"python": platform.python_version(), "system": platform.platform(terse=True)}
    if as_json:
        print(json.dumps(totals))
    else:
        for name, value in totals.items():
            print(f"{name:16} {value}")
    return int(any(totals.get(name, 0) for name in (*bad, "crashes", "hangs")))
