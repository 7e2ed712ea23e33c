"""The memory that child processes hold by themselves, at the moment of a stop.

A page that a forked child shares with the kernel is the kernel's: ending the child would not free it. So resident memory
is not added up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from ..collectors.process import descendants
from ..collectors.procfs import colon_lines, read_text
from ..errors import SourceUnavailable
from ..units import KIB, human_bytes

# Linux looks at each page of a child for its own share: tens of milliseconds for each GiB, more on a busy machine.
_LIMIT_SECONDS = 0.2
_NAME_LIMIT = 40
_WORKER = "worker"
# Command lines of processes that Python itself starts to run a function.
_WORKER_SIGNS = ("multiprocessing", "loky", "ipykernel_launcher")


class Child(NamedTuple):
    """A child process. `bytes`: what it holds by itself."""

    pid: int
    name: str
    bytes: int

    @property
    def is_worker(self) -> bool:
        """True if it runs a function for Python code, such as a worker of ``multiprocessing``."""
        return self.name == _WORKER


def children_of(pid: int) -> tuple[Child, ...]:
    """The descendants of a process that hold memory by themselves, largest first; empty if they cannot be listed."""
    try:
        pids = descendants(pid)
    except SourceUnavailable:
        return ()
    found = []
    ours = _arguments(pid)
    until = time.monotonic() + _LIMIT_SECONDS
    for child in pids:
        try:
            arguments = _arguments(child)
            own = exact_bytes(child) if time.monotonic() < until else None
            if own is None:
                own = _at_least_bytes(child, pid if arguments == ours else None)
            if own:
                name = _WORKER if arguments == ours else _name(arguments)
                found.append(Child(child, name, own))
        except (SourceUnavailable, OSError, LookupError, ValueError):
            continue  # it has ended
    return tuple(sorted(found, key=lambda one: -one.bytes))


def exact_bytes(pid: int) -> int | None:
    """Bytes in memory and swap that no other process shares; None if they cannot be read.

    Source: ``/proc/[pid]/smaps_rollup``, proc_pid_smaps(5). Sample: ``Private_Dirty:     1234 kB``.
    """
    try:
        return _sum(f"/proc/{pid}/smaps_rollup", "Private_Dirty", "SwapPss")
    except (SourceUnavailable, OSError, LookupError):
        return None  # a process of another user


def _at_least_bytes(pid: int, forked_from: int | None) -> int:
    """A lower bound of the same, read at once: anonymous memory, without what a forked process may share."""
    own = _sum(f"/proc/{pid}/status", "RssAnon", "VmSwap")
    if forked_from is None:
        return own
    return max(0, own - _sum(f"/proc/{forked_from}/status", "RssAnon", "VmSwap"))


def _sum(path: str, *names: str) -> int:
    lines = colon_lines(read_text(path))
    return sum(int(lines[name].split()[0]) for name in names) * KIB


def _arguments(pid: int) -> list[str]:
    return read_text(f"/proc/{pid}/cmdline").split("\0")


def _name(arguments: Sequence[str]) -> str:
    """``worker``, or the program and its script, such as ``python3 fill.py``; arguments may be secret."""
    if any(sign in one for one in arguments[:6] for sign in _WORKER_SIGNS):
        return _WORKER
    words = [os.path.basename(arguments[0])]
    words += [os.path.basename(one) for one in arguments[1:2] if one.endswith((".py", ".sh"))]
    return " ".join(words)[:_NAME_LIMIT] or "a process"


def text(children: Sequence[Child], most_bytes: int) -> str:
    """``3 child processes hold 1.40 GiB by themselves, the largest (worker, process 12) 0.60 GiB.``

    Args:
        children: At least one, largest first.
        most_bytes: What they can hold together. They are read one after the other, and may grow or be killed meanwhile.
    """
    total = human_bytes(min(most_bytes, sum(one.bytes for one in children)))
    most = children[0]
    if len(children) == 1:
        return f"A child process ({most.name}, process {most.pid}) holds {total} by itself."
    return (
        f"{len(children)} child processes hold {total} by themselves, "
        f"the largest ({most.name}, process {most.pid}) {human_bytes(most.bytes)}."
    )
