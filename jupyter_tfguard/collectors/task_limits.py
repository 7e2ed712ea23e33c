"""Limits that the process hits rather than its memory group: of threads, of file sizes, of address space."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import SourceUnavailable
from .procfs import read_int, read_text

# Max processes             94997                94997                processes
_LINE = re.compile(r"^Max (.+?) {2,}(\S+) +\S+", re.MULTILINE)


@dataclass(frozen=True)
class TasksOfGroup:
    """The limit of a pids control group; it counts threads.

    Attributes:
        limit_count: Threads it may have.
        used_count: Threads it has; None when unknown.
    """

    limit_count: int
    used_count: int | None


def soft_limits(root: str = "", pid: int | None = None) -> dict[str, int | None]:
    """Soft limits of a process by name (``file size``, ``address space``), in base units; None is unlimited.

    Args:
        root: Prepended to paths.
        pid: The process; None = this one.

    Source: ``/proc/[pid]/limits``, getrlimit(2).

    Raises:
        SourceUnavailable: There is no such file here.
    """
    found = _LINE.findall(read_text(f"{root}/proc/{pid or 'self'}/limits"))
    return {name: int(soft) if soft.isdigit() else None for name, soft in found}


def tasks_of_group(root: str = "") -> TasksOfGroup | None:
    """The tightest thread limit of the control groups this process is in; None when there is none, or none is visible.

    Source: ``pids.max`` and ``pids.current``, cgroup v1 and v2.
    """
    limits = []
    for folder in _folders(root):
        limit = read_int(f"{folder}/pids.max")
        if limit is not None:
            limits.append(TasksOfGroup(limit, read_int(f"{folder}/pids.current")))
    return min(limits, key=lambda found: found.limit_count, default=None)


def _folders(root: str) -> Iterator[str]:
    """The group's folder and those around it. A container sees its own group as the top one."""
    try:
        lines = read_text(f"{root}/proc/self/cgroup").splitlines()
    except SourceUnavailable:
        return
    for line in lines:
        # 8:pids:/docker/1f    v1          0::/user.slice/session-2.scope    v2
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "pids" in controllers.split(","):
            top = f"{root}/sys/fs/cgroup/{controllers}"
        elif number == "0" and not controllers:
            top = f"{root}/sys/fs/cgroup"
        else:
            continue
        while path.strip("/"):
            yield top + path.rstrip("/")
            path = posixpath.dirname(path)
        yield top
