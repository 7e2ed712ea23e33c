"""What kernels, their children and their neighbours do at a memory limit, played for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.crash.cells import EAT, send
from tests.crash.scene import Play
from tests.crash.settings import MIB, memory_limit
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from tests.crash.conftest import Kernel

# Long enough for the watcher to see a process in another group, and its counters.
_SETTLE_SECONDS = 2.2


def eats_up_its_limit(kernel: Kernel) -> None:
    """Takes 16 MiB twenty times a second until it is killed."""
    with memory_limit(400 * MIB) as limit:
        limit.add(kernel.pid)
        kernel.run("held = []")
        kernel.start(EAT)
        kernel.report()
        kernel.close()


def has_a_child_killed(kernel: Kernel) -> None:
    """The child is the one that the OOM killer must choose; the watcher has seen it before."""
    with memory_limit(500 * MIB) as limit, TemporaryDirectory() as folder:
        go = Path(folder) / "go"
        child = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n{EAT}"
        limit.add(kernel.pid)
        kernel.start(
            f"import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
            "open(f'/proc/{p.pid}/oom_score_adj', 'w').write('500')\nassert p.wait() == -9"
        )
        wait_until(kernel.children_bytes, "the watcher to see the child")
        go.touch()
        wait_until(kernel.entries, "the child's report")
        assert kernel.run("assert p.returncode == -9")["status"] == "ok"
        kernel.close()


# --- near misses


def _held(fraction: float) -> str:
    return f"held = b'x' * int({fraction} * 300 * {MIB})"


def just_below_the_limit(then: int = signal.SIGKILL, *, freed: bool = False) -> Play:
    """Holds 94 % of the limit, or did a moment ago, and is ended by somebody."""

    def play(kernel: Kernel) -> None:
        with memory_limit(300 * MIB) as limit:
            limit.add(kernel.pid)
            kernel.run(_held(0.94))
            if freed:
                kernel.run("del held")
            time.sleep(_SETTLE_SECONDS)
            kernel.sleep()
            os.kill(kernel.pid, then)
            kernel.report()
            kernel.close()

    return play


def limit_hit_by_files(kernel: Kernel) -> None:
    """The page cache fills the group again and again, which counts as hits of the limit in version 1."""
    with memory_limit(200 * MIB) as limit:
        limit.add(kernel.pid)
        time.sleep(_SETTLE_SECONDS)
        kernel.start(
            "import tempfile, os, signal\nwith tempfile.TemporaryFile(dir='/var/tmp', buffering=0) as file:\n"
            "    for _ in range(25): file.write(bytes(16 << 20))\n    os.fsync(file.fileno())\n"
            + send("SIGKILL")
        )
        kernel.report()
        kernel.close()


def neighbour_killed(*, same_group: bool, seconds_before: float = 0.0) -> Play:
    """A process beside the kernel is killed at its memory limit, then somebody ends the kernel."""

    def play(kernel: Kernel) -> None:
        with memory_limit(300 * MIB) as limit:
            if same_group:
                limit.add(kernel.pid)
            eater = subprocess.Popen([sys.executable, "-c", f"input()\n{EAT}"], stdin=-1)
            limit.add(eater.pid)
            time.sleep(_SETTLE_SECONDS)
            kernel.sleep()
            eater.communicate(b"\n")
            assert eater.returncode == -signal.SIGKILL
            time.sleep(seconds_before)
            os.kill(kernel.pid, signal.SIGKILL)
            kernel.report()
            kernel.close()

    return play


def child_killed_at_the_limit(then: str) -> Play:
    """The kernel's child is killed at the memory limit; at that very moment the kernel ends in another way."""

    def play(kernel: Kernel) -> None:
        with memory_limit(300 * MIB) as limit:
            limit.add(kernel.pid)
            time.sleep(_SETTLE_SECONDS)
            kernel.start(
                "import subprocess, sys\n"
                f"p = subprocess.Popen([sys.executable, '-c', {EAT!r}])\n"
                "open(f'/proc/{p.pid}/oom_score_adj', 'w').write('500')\n"
                f"assert p.wait() == -9\n{then}"
            )
            kernel.report()
            kernel.close()

    return play


def child_killed_by_hand(kernel: Kernel) -> None:
    """A neighbour is killed for memory; in the same moment somebody ends the kernel's child. The kernel lives."""
    with memory_limit(300 * MIB) as limit:
        limit.add(kernel.pid)
        kernel.run("import subprocess; child = subprocess.Popen(['sleep', '100'])")
        child = int(
            kernel.run("1", ask={"pid": "child.pid"})["user_expressions"]["pid"]["data"][
                "text/plain"
            ]
        )
        eater = subprocess.Popen([sys.executable, "-c", f"input()\n{EAT}"], stdin=-1)
        limit.add(eater.pid)
        time.sleep(_SETTLE_SECONDS)
        eater.communicate(b"\n")
        os.kill(child, signal.SIGKILL)
        time.sleep(_SETTLE_SECONDS)
        assert kernel.run("child.wait()")["status"] == "ok"
        kernel.close()


def counter_rose_before_it_came(kernel: Kernel) -> None:
    """The group has seen a kill; then the kernel moves in."""
    with memory_limit(200 * MIB) as limit:
        eater = subprocess.Popen([sys.executable, "-c", f"input()\n{EAT}"], stdin=-1)
        limit.add(eater.pid)
        eater.communicate(b"\n")
        limit.add(kernel.pid)
        time.sleep(_SETTLE_SECONDS)
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.report()
        kernel.close()
