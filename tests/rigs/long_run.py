"""What the rigs with long counts share: pieces of work in forked processes, and going on after an interruption.

A count is cut into pieces; each piece runs in a process of its own, whose death or standstill is itself a result: the
case it was at is counted under ``crashes`` or ``hangs``, and the rest of the piece runs again. Finished pieces are kept
in a state file; the same command goes on from there, also with a bigger count.

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
from pathlib import Path
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
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="keep what is done here, and go on from it"
    )
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
    settings: Totals,
    piece: int,
    jobs: int,
    state: Path | None,
    stall_seconds: float = 30.0,
) -> Totals:
    """The totals over cases 0 .. `count`, of this run and those it goes on from.

    Args:
        work: Called in a forked process with the first case, the one after the last, and its progress.
        settings: What tells this run from another (rig, seed); a state file of another run is refused.
        piece: Cases for one process.
        stall_seconds: A worker that stays at one case this long hangs.
    """
    run = _Run(work, settings, jobs, state, stall_seconds)
    with _ended_by_sigterm():
        return run.complete(count, piece)


class _Run:
    def __init__(
        self, work: Work, settings: Totals, jobs: int, state: Path | None, stall_seconds: float
    ) -> None:
        self._work, self._jobs, self._state, self._stall = work, jobs, state, stall_seconds
        self._settings = settings
        self._done: list[tuple[int, int]] = []
        self._totals: Totals = {}
        self._seconds = 0.0
        if state is not None and state.exists():
            kept = json.loads(state.read_text(encoding="utf-8"))
            if kept["settings"] != settings:
                sys.exit(f"{state} is of another run: {kept['settings']}")
            self._done = [(first, end) for first, end in kept["done"]]
            self._totals, self._seconds = kept["totals"], kept["seconds"]

    def complete(self, count: int, piece: int) -> Totals:
        waiting = list(self._missing(count, piece))[::-1]
        workers: list[_Worker] = []
        began = time.monotonic()
        before = self._seconds
        try:
            while waiting or workers:
                while waiting and len(workers) < self._jobs:
                    workers.append(self._start(waiting.pop()))
                for worker in self._ended(workers):
                    workers.remove(worker)
                    waiting += self._take(worker)
                    self._seconds = before + time.monotonic() - began
                    self._save()
        finally:
            for worker in workers:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
        return self._totals | {"seconds": round(self._seconds, 1)}

    def _missing(self, count: int, piece: int) -> Iterator[tuple[int, int]]:
        at = 0
        for first, end in [*sorted(self._done), (count, count)]:
            while at < min(first, count):
                stop = min(at + piece, first, count)
                yield at, stop
                at = stop
            at = max(at, end)

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
            self._done = _joined([*self._done, worker.piece])
            return []
        if os.WIFEXITED(status):
            # What is tried may raise; this came from the rig itself.
            sys.exit(f"at case {case}: {bytes(worker.text).decode('utf-8', 'replace')}")
        how = "hangs" if worker.hung else "crashes"
        failure = {"case": case, how: f"signal {os.WTERMSIG(status)}"}
        merge(self._totals, {how: 1, "failures": [failure]})
        self._done = _joined([*self._done, (case, case + 1)])
        return [(a, b) for a, b in ((case + 1, end), (first, case)) if a < b]

    def _save(self) -> None:
        if self._state is None:
            return
        kept = {
            "settings": self._settings,
            "done": self._done,
            "totals": self._totals,
            "seconds": self._seconds,
        }
        self._state.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._state.with_name(self._state.name + ".new")
        fresh.write_text(json.dumps(kept), encoding="utf-8")
        os.replace(fresh, self._state)


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


def _joined(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Touching pieces as one, in order."""
    found: list[tuple[int, int]] = []
    for first, end in sorted(pieces):
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the run, and no worker is left behind."""

    def end(_signal: int, _frame: object) -> None:
        sys.exit("ended; with a state file, the same command goes on")

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
