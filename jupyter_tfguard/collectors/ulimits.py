"""Limits of a process set by ``ulimit``, a batch system or itself, what they count, and the thread limit of its group.

Not here: RLIMIT_RSS and RLIMIT_MEMLOCK, which do not limit the arrays of a kernel.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import SourceUnavailable
from ..metrics import Metric, Unit
from ..procfs import read_int, read_small, read_text
from ..units import KIB

_EVERY_SECONDS = 0.95
# Max processes             94997                94997                processes
_LINE = re.compile(r"^Max (.+?) {2,}(\S+) +\S+", re.MULTILINE)
# VmSize:	 1234567 kB, VmData:	  345678 kB
_STATUS = re.compile(rb"^(VmSize|VmData):\s+(\d+) kB$", re.MULTILINE)
# Name of the limit in /proc/[pid]/limits, metric of the limit, status field that it counts, metric of that field.
_SOURCES = (
    (
        "address space",
        "process.address_space_limit_bytes",
        b"VmSize",
        "process.address_space_bytes",
    ),
    ("data size", "process.data_limit_bytes", b"VmData", "process.data_bytes"),
)


class UlimitCollector:
    """Limits of address space and data of one process, and their use. Thread-safe.

    Source: soft limits in ``/proc/[pid]/limits``, getrlimit(2), and ``/proc/[pid]/status``, read once a second.
    RLIMIT_AS counts everything mapped, including files and memory that was only reserved; RLIMIT_DATA counts private
    writable memory.

    Args:
        pid: The process.
        root: Prepended to paths.
    """

    metrics: tuple[Metric, ...] = (
        Metric(
            "process.address_space_bytes", "Address space", Unit.BYTES, "/proc/[pid]/status, VmSize"
        ),
        Metric(
            "process.address_space_limit_bytes",
            "Limit of address space",
            Unit.BYTES,
            "/proc/[pid]/limits, address space",
        ),
        Metric("process.data_bytes", "Data", Unit.BYTES, "/proc/[pid]/status, VmData"),
        Metric(
            "process.data_limit_bytes", "Limit of data", Unit.BYTES, "/proc/[pid]/limits, data size"
        ),
    )

    def __init__(self, pid: int, root: str = "") -> None:
        self._pid = pid
        self._root = root
        self._values: dict[str, float] = {}
        self._next = 0.0

    def collect(self) -> dict[str, float]:
        """Value per metric name, only for limits that are set.

        Raises:
            SourceUnavailable: There is no such process, or this machine has no procfs.
        """
        now = time.monotonic()
        if now >= self._next:
            self._values = self._read()
            self._next = now + _EVERY_SECONDS
        return self._values

    def _read(self) -> dict[str, float]:
        limits = soft_limits(self._root, self._pid)
        limited = [source for source in _SOURCES if limits.get(source[0]) is not None]
        if not limited:
            return {}
        try:
            status = read_small(f"{self._root}/proc/{self._pid}/status")
        except OSError as bad:
            raise SourceUnavailable(f"process {self._pid}: {bad.strerror}") from bad
        used = {field: int(number) * KIB for field, number in _STATUS.findall(status)}
        values: dict[str, float] = {}
        for name, limit_metric, field, used_metric in limited:
            limit = limits[name]
            if limit is not None and field in used:
                values |= {limit_metric: limit, used_metric: used[field]}
        return values

    def close(self) -> None:
        """Nothing is kept open."""


class TasksOfGroup(NamedTuple):
    """The limit of a pids control group; it counts threads.

    Attributes:
        limit_count: Maximum number of threads.
        used_count: Current number of threads; None = unknown.
    """

    limit_count: int
    used_count: int | None


def soft_limits(root: str = "", pid: int | None = None) -> dict[str, int | None]:
    """Soft limits of a process by name (``file size``, ``address space``), in base units; None = unlimited.

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
    """The lowest thread limit of the control groups of this process; None if there is none, or none is visible.

    Source: ``pids.max`` and ``pids.current``, cgroup v1 and v2.
    """
    limits = []
    for folder in _folders(root):
        limit = read_int(f"{folder}/pids.max")
        if limit is not None:
            limits.append(TasksOfGroup(limit, read_int(f"{folder}/pids.current")))
    return min(limits, key=lambda found: found.limit_count, default=None)


def thread_limits() -> dict[str, int | None]:
    """Limits of the threads of this process: ``group_count`` of its control group, ``user_count`` of its user.

    None = there is none, or it is unknown. Children inherit both, but may be put into another group.
    """
    group, user = None, None
    with contextlib.suppress(SourceUnavailable):
        group = tasks_of_group()
    with contextlib.suppress(SourceUnavailable):
        user = soft_limits().get("processes")
    return {"group_count": group.limit_count if group else None, "user_count": user}


def _folders(root: str) -> Iterator[str]:
    """Folders of the group and its ancestors. In a container, the group of the container is the root."""
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
