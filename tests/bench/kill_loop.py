"""Kills a process that carries the real recording, again and again, at a random instant:

    python tests/bench/kill_loop.py --count N --seed S [--jobs J] [--dir FOLDER] [--json]

prints ``{"kills", "unreadable", "lost_records", "torn_shown", ...}``. Each life is forked from a warm process and dies in
its phase (start, header, record, rotate, close) by SIGKILL: most by a timer of the OS kernel's, which can strike between
any two instructions and within a system call, the others by another process. What must be there afterwards:
``tests/rigs/kills.py``. Folders lie on a real disk unless ``--dir`` says otherwise. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rigs.kills import judge
from tests.rigs.lives import AFTER, PHASES, Life, Page, Plan
from tests.rigs.long_run import Progress, Totals, long_run, options, show

BAD = ("unreadable", "lost_records", "torn_shown", "torn_written", "problems")
_CLOCK_MONOTONIC = 1
_PR_SET_PDEATHSIG = 1
# Phases that go on until the kill: how long at most.
_ENDLESS_SECONDS = {"header": 0.003, "record": 0.004, "rotate": 0.008}


class DeathTimer:
    """SIGKILL for this process after a time, by the OS kernel itself. Source: timer_create(2), sigevent(3type)."""

    class _Event(ctypes.Structure):
        _fields_ = (
            ("value", ctypes.c_void_p),
            ("signal", ctypes.c_int),
            ("notify", ctypes.c_int),  # 0: SIGEV_SIGNAL
            ("padding", ctypes.c_char * 48),
        )

    class _Times(ctypes.Structure):
        _fields_ = tuple(
            (name, ctypes.c_long)
            for name in ("interval", "interval_nanoseconds", "seconds", "nanoseconds")
        )

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def die_with_parent(self) -> None:
        """Nobody is left behind when the loop itself is ended. Source: prctl(2)."""
        self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def start(self, seconds: float) -> None:
        """Die after so long."""
        event = self._Event(signal=signal.SIGKILL, notify=0)
        timer = ctypes.c_void_p()
        nanoseconds = max(1, int(seconds * 1e9))
        times = self._Times(seconds=nanoseconds // 10**9, nanoseconds=nanoseconds % 10**9)
        if self._libc.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
            raise OSError(ctypes.get_errno(), "timer_create")
        if self._libc.timer_settime(timer, 0, ctypes.byref(times), None):
            raise OSError(ctypes.get_errno(), "timer_settime")


class KillLoop:
    """The work of one process: lives and deaths, one after the other."""

    def __init__(self, seed: int, base: str) -> None:
        self._seed, self._base = seed, base
        self._timer = DeathTimer()

    def __call__(self, first: int, end: int, progress: Progress) -> Totals:
        """The deaths `first` .. `end`."""
        names = ("kills", *BAD, "live_reads")
        totals: Totals = dict.fromkeys(names, 0) | {"killed_in": {}, "failures": []}
        self._page = Page()  # of this process and its children alone
        root = Path(tempfile.mkdtemp(dir=self._base))
        os.environ["TFGUARD_DIR"] = str(root / "problems")
        try:
            spans = self._spans(root / "spans")
            for number in range(first, end):
                progress.at(number)
                self._one(number, root / str(number), spans, totals)
            totals["problems"] = len(list((root / "problems").glob("*")))
        finally:
            shutil.rmtree(root, ignore_errors=True)
        return totals

    def _spans(self, root: Path) -> dict[str, float]:
        """How long the phases that end by themselves take here: the median of a few, in seconds."""
        spans = dict(_ENDLESS_SECONDS)
        for phase in ("start", "close"):
            took = []
            for number in range(8):
                plan = Plan.drawn(self._seed, PHASES.index(phase) + len(PHASES) * number)
                folder = root / f"{phase}-{number}"
                pid = self._born(Life(plan, folder, self._page), None)
                os.waitpid(pid, 0)
                took.append(self._page.span_seconds(phase))
                shutil.rmtree(folder, ignore_errors=True)
            spans[phase] = statistics.median(took)
        return spans

    def _born(self, life: Life, seconds: float | None) -> int:
        """A forked process that lives `life` and is to die `seconds` after its phase began; None: by itself."""
        self._page.clear()
        pid = os.fork()
        if pid == 0:
            status = 1
            self._timer.die_with_parent()
            with contextlib.suppress(BaseException):
                life.live(None if seconds is None else lambda: self._timer.start(seconds))
                status = 0
            os._exit(status)
        return pid

    def _one(self, number: int, root: Path, spans: dict[str, float], totals: Totals) -> None:
        plan = Plan.drawn(self._seed, number)
        chance = random.Random(f"{self._seed}/{number}/kill")
        seconds = chance.uniform(0, spans[plan.phase])
        life = Life(plan, root, self._page)
        by_timer = chance.random() < 0.8
        pid = self._born(life, seconds if by_timer else 10.0)
        if not by_timer:
            self._wait_for(plan.phase)
            time.sleep(seconds)
            if chance.random() < 0.5:
                totals["live_reads"] += 1
                self._count(number, judge(life, dead=False), totals)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        phase = self._page.phase
        totals["killed_in"][phase] = totals["killed_in"].get(phase, 0) + 1
        found = judge(life, dead=True)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            found["unreadable"] = f"the life ended by itself, status {status}"
        totals["kills"] += 1
        self._count(number, found, totals)
        shutil.rmtree(root, ignore_errors=True)

    def _wait_for(self, phase: str) -> None:
        while self._page.phase not in (phase, AFTER):
            time.sleep(0.0001)

    def _count(self, number: int, found: dict[str, str], totals: Totals) -> None:
        for name, text in found.items():
            totals[name] += 1
            totals["failures"].append({"kill": number, name: text, "in": self._page.phase})


def main() -> int:
    """Run what the command line asks for."""
    parser = options(str(__doc__).splitlines()[0].rstrip(":"), count=2000, jobs=os.cpu_count() or 1)
    parser.add_argument("--dir", help="where the recordings lie; default: the temporary folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="tfguard-kills-", dir=chosen.dir, ignore_cleanup_errors=True
    ) as base:
        totals = long_run(
            KillLoop(chosen.seed, base),
            chosen.count,
            piece=500,
            jobs=chosen.jobs,
        )
    return show(totals | {"seed": chosen.seed}, as_json=chosen.json, bad=BAD)


if __name__ == "__main__":
    sys.exit(main())
