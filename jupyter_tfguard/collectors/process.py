"""The memory of one process and of its descendants.

Not here: proportional or unique sizes (smaps), which cost hundreds of milliseconds on a process of some GiB.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import time
from typing import Any

from ..errors import SourceUnavailable
from ..metrics import Metric, Unit
from ..units import parse_kib
from .procfs import KeptFile, colon_lines, read_text

_CHILDREN_EVERY_SECONDS = 1.0
_CHILDREN_LATEST_SECONDS = 10.0
_CHILDREN_COST_FRACTION = 0.001  # of a core
_CHILDREN_LIMIT = 512
_STATUS_FIELDS = (("process.peak_bytes", "VmHWM"), ("process.swap_bytes", "VmSwap"))


class ProcessCollector:
    """Memory of one process.

    Source: ``/proc/[pid]/statm`` (second field, pages), ``/proc/[pid]/status`` and ``/proc/[pid]/task/*/children``, see
    proc_pid_statm(5), proc_pid_status(5), proc_tid_children(5); psutil where there is no procfs. Resident memory
    counts shared pages in full and leaves swapped ones out; Linux keeps it per processor and may be some hundred KiB
    behind. Children are looked for at most once a second, more rarely where that takes more than a millisecond (a
    process of hundreds of threads); in between, their last numbers are repeated.

    Raises:
        SourceUnavailable: There is no such process, or it may not be looked at.
    """

    metrics: tuple[Metric, ...] = (
        Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "/proc/[pid]/statm, resident"),
        Metric(
            "process.peak_bytes", "Highest resident memory", Unit.BYTES, "/proc/[pid]/status, VmHWM"
        ),
        Metric("process.swap_bytes", "Swapped out", Unit.BYTES, "/proc/[pid]/status, VmSwap"),
        Metric("process.thread_count", "Threads", Unit.COUNT, "/proc/[pid]/status, Threads"),
        Metric(
            "process.children_rss_bytes",
            "Resident memory of child processes",
            Unit.BYTES,
            "/proc/[pid]/statm of all descendants",
        ),
        Metric(
            "process.children_count",
            "Child processes",
            Unit.COUNT,
            "/proc/[pid]/task/*/children of all descendants",
        ),
    )

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.children: tuple[int, ...] | None = None
        self._children_next = 0.0
        self._children_values: dict[str, float] = {}
        self._psutil: Any = None
        if not has_procfs():
            self._psutil = _psutil_process(pid)
            return
        self._statm = KeptFile(f"/proc/{pid}/statm")
        try:
            self._status = KeptFile(f"/proc/{pid}/status")
        except SourceUnavailable:
            self._statm.close()
            raise

    def collect(self) -> dict[str, float]:
        """Value per metric name; what the system does not tell is left out.

        Raises:
            SourceUnavailable: The process has ended, or its memory is being taken down (resident size 0).
        """
        values = self._collect_psutil() if self._psutil is not None else self._collect_procfs()
        began = time.monotonic()
        if began >= self._children_next:
            self._children_values = self._collect_children()
            cost = time.monotonic() - began
            pause = max(_CHILDREN_EVERY_SECONDS, cost / _CHILDREN_COST_FRACTION)
            self._children_next = began + min(pause, _CHILDREN_LATEST_SECONDS)
        return values | self._children_values

    def _collect_procfs(self) -> dict[str, float]:
        pages = int(self._statm.read().split()[1])
        if pages == 0:
            raise SourceUnavailable(f"process {self.pid} has given its memory back")
        values: dict[str, float] = {"process.rss_bytes": pages * mmap.PAGESIZE}
        found = colon_lines(self._status.read())
        for name, field in _STATUS_FIELDS:
            if field in found:
                values[name] = parse_kib(found[field])
        if "Threads" in found:
            values["process.thread_count"] = int(found["Threads"])
        return values

    def _collect_children(self) -> dict[str, float]:
        try:
            self.children = self._list_children()
        except SourceUnavailable:
            self.children = None
            return {}
        total = 0
        for child in self.children:
            with contextlib.suppress(SourceUnavailable):
                total += self._rss_of(child)
        return {
            "process.children_rss_bytes": total,
            "process.children_count": len(self.children),
        }

    def _list_children(self) -> tuple[int, ...]:
        if self._psutil is None:
            return descendants(self.pid)
        import psutil

        try:
            return tuple(child.pid for child in self._psutil.children(recursive=True))
        except psutil.Error as bad:
            raise SourceUnavailable(str(bad)) from bad

    def _rss_of(self, pid: int) -> int:
        if self._psutil is None:
            return int(read_text(f"/proc/{pid}/statm").split()[1]) * mmap.PAGESIZE
        return int(_psutil_call(_psutil_process(pid).memory_info).rss)

    def _collect_psutil(self) -> dict[str, float]:
        memory = _psutil_call(self._psutil.memory_info)
        values: dict[str, float] = {"process.rss_bytes": memory.rss}
        if hasattr(memory, "peak_wset"):  # Windows
            values["process.peak_bytes"] = memory.peak_wset
        values["process.thread_count"] = _psutil_call(self._psutil.num_threads)
        return values

    def close(self) -> None:
        """Give the descriptors back."""
        if self._psutil is None:
            self._statm.close()
            self._status.close()


def has_procfs() -> bool:
    """True where processes are read from Linux's /proc."""
    return sys.platform == "linux" and hasattr(os, "pread") and os.path.exists("/proc/self/statm")


def descendants(pid: int) -> tuple[int, ...]:
    """Process ids of all descendants, parents before their children, zombies included; at most 512.

    Raises:
        SourceUnavailable: The process has ended, or this Linux keeps no lists of children.
    """
    found: list[int] = []
    ahead = [pid]
    while ahead and len(found) < _CHILDREN_LIMIT:
        try:
            children = _children(ahead.pop(0))
        except SourceUnavailable:
            if not found and not ahead:
                raise
            continue  # a child that ended just now
        found += children
        ahead += children
    return tuple(found[:_CHILDREN_LIMIT])


def _children(pid: int) -> list[int]:
    tasks = f"/proc/{pid}/task"
    try:
        threads = os.listdir(tasks)
    except OSError as bad:
        raise SourceUnavailable(f"{tasks}: {bad.strerror}") from bad
    found: list[int] = []
    gone: SourceUnavailable | None = None
    for thread in threads:
        try:
            found += map(int, read_text(f"{tasks}/{thread}/children").split())
        except SourceUnavailable as bad:
            gone = bad  # a thread that ended just now, or a Linux without CONFIG_PROC_CHILDREN
    if gone is not None and not found and not os.path.exists(f"{tasks}/{pid}/children"):
        raise gone
    return found


def _psutil_process(pid: int) -> Any:
    import psutil

    try:
        return psutil.Process(pid)
    except psutil.Error as bad:
        raise SourceUnavailable(f"process {pid}: {bad}") from bad


def _psutil_call(method: Any) -> Any:
    import psutil

    try:
        return method()
    except psutil.Error as bad:
        raise SourceUnavailable(str(bad)) from bad
