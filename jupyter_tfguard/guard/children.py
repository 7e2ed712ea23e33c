"""The memory that child processes hold by themselves, at the moment of a stop.

A page that a forked child shares with the kernel is the kernel's: ending the child would not free it. So resident memory
is not added up.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ..collectors.process import descendants
from ..collectors.resident import status_bytes
from ..errors import SourceUnavailable
from ..procfs import read_text
from ..units import human_bytes

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
    for child in pids:
        try:
            if own := own_bytes(child, pid):
                found.append(Child(child, name_of(child, pid), own))
        except (SourceUnavailable, OSError, LookupError, ValueError):
            continue  # it has ended
    return tuple(sorted(found, key=lambda one: -one.bytes))


def own_bytes(child: int, parent: int) -> int:
    """Bytes in memory and swap that a child holds by itself, at least; 0 if that is unknown.

    For a forked child, its anonymous memory above that of its parent. Its private pages in ``smaps`` would be exact, but
    counting them takes tenths of a second on a busy machine, and the children fill the memory meanwhile.

    Source: ``RssAnon`` and ``VmSwap`` in ``/proc/[pid]/status``, proc_pid_status(5).
    """
    try:
        held = _anonymous(child)
        return max(0, held - _anonymous(parent)) if _is_forked(child, parent) else held
    except (SourceUnavailable, OSError, LookupError, ValueError):
        return 0


def name_of(child: int, parent: int) -> str:
    """``worker``, or the program and its script, such as ``python3 fill.py``; arguments may be secret.

    Raises:
        OSError: It has ended.
    """
    arguments = _arguments(child)
    if _is_forked(child, parent) or any(
        sign in one for one in arguments[:6] for sign in _WORKER_SIGNS
    ):
        return _WORKER
    if not arguments[0]:
        return _short_name(child)
    words = [os.path.basename(arguments[0])]
    words += [os.path.basename(one) for one in arguments[1:2] if one.endswith((".py", ".sh"))]
    return " ".join(words)[:_NAME_LIMIT]


def _is_forked(child: int, parent: int) -> bool:
    arguments = _arguments(child)
    if not arguments[0]:  # of a process that is being killed only this name is left
        return _short_name(child) == _short_name(parent)
    return arguments == _arguments(parent)


def _short_name(pid: int) -> str:
    return read_text(f"/proc/{pid}/comm").strip()


def _anonymous(pid: int) -> int:
    return sum(status_bytes(pid, "RssAnon", "VmSwap").values())


def _arguments(pid: int) -> list[str]:
    return read_text(f"/proc/{pid}/cmdline").split("\0")


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
