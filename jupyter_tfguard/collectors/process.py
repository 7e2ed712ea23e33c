"""The memory of one process and of its descendants.

Not here: proportional or unique sizes (smaps), which cost hundreds of milliseconds on a process of some GiB.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import time
from typing import Any

from ..errors import SourceUnavailable
from ..metrics import Metric, Unit
from ..procfs import read_small, read_text
from ..units import KIB
from .resident import ResidentSize, psutil_process

_STATUS_EVERY_SECONDS = 0.95
_CHILDREN_EVERY_SECONDS = 1.95
_CHILDREN_LIMIT = 512
# VmHWM:     12345 kB, VmSwap:         0 kB, Threads:        4
_STATUS = re.compile(rb"^(VmHWM|RssShmem|VmSwap|Threads):\s+(\d+)( kB)?$", re.MULTILINE)
_SHARED = "shared memory"  # no metric of its own
_STATUS_METRICS = {
    b"VmHWM": "process.peak_bytes",
    b"VmSwap": "process.swap_bytes",
    b"Threads": "process.thread_count",
    b"RssShmem": _SHARED,
}


class ProcessCollector:
    """Memory of one process.

    Source: :class:`~.resident.ResidentSize`, ``/proc/[pid]/status`` and ``/proc/[pid]/task/*/children``, see
    proc_pid_status(5), proc_tid_children(5); psutil without procfs. Resident memory counts shared pages in full and
    excludes swapped pages; Linux counts it per CPU, so it may lag by some hundred KiB. Children are listed every two
    seconds; in between, their last values are returned.

    Peak, swap and threads are read once a second, and whenever the resident memory exceeds the last known peak: inside
    a kernel, every opened file makes its other threads wait. To track many processes, call :meth:`resident_bytes` often
    and the other methods rarely.

    Args:
        pid: The process.
        start_time: As for :class:`~.resident.ResidentSize`.

    Attributes:
        children: Process ids of the descendants; None before the first poll, and if they cannot be listed.

    Raises:
        SourceUnavailable: There is no such process, or access is denied.
    """

    metrics: tuple[Metric, ...] = (
        Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "/proc/[pid]/statm, resident"),
        Metric(
            "process.peak_bytes", "Peak resident memory", Unit.BYTES, "/proc/[pid]/status, VmHWM"
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
            "process.file_bytes",
            "Resident pages of files, which the system can drop",
            Unit.BYTES,
            "/proc/[pid]/statm, shared, without /proc/[pid]/status, RssShmem",
        ),
    )

    def __init__(self, pid: int, start_time: int | None = None) -> None:
        self.pid = pid
        self.children: tuple[int, ...] | None = None
        self._children_next = 0.0
        self._children_values: dict[str, float] = {}
        self._status_next = 0.0
        self._status_values: dict[str, float] = {}
        self._resident = ResidentSize(pid, start_time)
        self._psutil: Any = self._resident.psutil_process

    def collect(self, *, fresh: bool = False) -> dict[str, float]:
        """Value per metric name; unknown values are left out.

        Args:
            fresh: Read peak, swap and threads too, even if they were just read.

        Raises:
            SourceUnavailable: The process has ended, or its memory is being released (resident size 0).
        """
        (rss, shared), now = self._resident.read_with_shared(), time.monotonic()
        peak = self._status_values.get("process.peak_bytes", 0)
        if fresh or now >= self._status_next or rss > peak:
            values = self._read_status()
            # Fails if the values may belong to a later process.
            rss, shared = self._resident.read_with_shared()
            self._status_values, self._status_next = values, now + _STATUS_EVERY_SECONDS
        values = {"process.rss_bytes": rss, **self._status_values, **self.children_values()}
        in_memory = values.pop(_SHARED, None)
        if shared is not None and in_memory is not None:
            values["process.file_bytes"] = max(0.0, shared - in_memory)
        return values

    def resident_bytes(self) -> int:
        """Resident memory only.

        Raises:
            SourceUnavailable: As :meth:`collect`.
        """
        return self._resident.read()

    def status(self) -> dict[str, float]:
        """Peak, swap and threads of the process that has this id now.

        It is the tracked process if :meth:`resident_bytes` still succeeds afterwards.

        Raises:
            SourceUnavailable: There is no process with this id.
        """
        values = self._read_status()
        values.pop(_SHARED, None)
        return values

    def _read_status(self) -> dict[str, float]:
        if self._psutil is not None:
            return self._psutil_status()
        try:
            content = read_small(f"/proc/{self.pid}/status")
        except OSError as bad:
            raise SourceUnavailable(f"process {self.pid}: {bad.strerror}") from bad
        return {
            _STATUS_METRICS[field]: int(number) * (KIB if unit else 1)
            for field, number, unit in _STATUS.findall(content)
        }

    def children_values(self) -> dict[str, float]:
        """Values of the descendants, updated every two seconds."""
        now = time.monotonic()
        if now >= self._children_next:
            self._children_values = self._collect_children()
            self._children_next = now + _CHILDREN_EVERY_SECONDS
        return self._children_values

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
        return {"process.children_rss_bytes": total}

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
        return int(_psutil_call(psutil_process(pid).memory_info).rss)

    def _psutil_status(self) -> dict[str, float]:
        values: dict[str, float] = {}
        memory = _psutil_call(self._psutil.memory_info)
        if hasattr(memory, "peak_wset"):  # Windows
            values["process.peak_bytes"] = memory.peak_wset
        values["process.thread_count"] = _psutil_call(self._psutil.num_threads)
        return values

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        self._resident.close()


def descendants(pid: int) -> tuple[int, ...]:
    """Process ids of all descendants, parents before their children, zombies included; at most 512.

    Raises:
        SourceUnavailable: The process has ended, or this Linux does not list children.
    """
    found: list[int] = []
    ahead = [pid]
    while ahead and len(found) < _CHILDREN_LIMIT:
        try:
            children = _children(ahead.pop(0))
        except SourceUnavailable:
            if not found and not ahead:
                raise
            continue  # a child that just ended
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
        path = f"{tasks}/{thread}/children"
        try:
            found += map(int, read_small(path).split())
        except OSError as bad:
            # A thread that just ended, or a Linux without CONFIG_PROC_CHILDREN.
            gone = SourceUnavailable(f"{path}: {bad.strerror}")
    if gone is not None and not found and not os.path.exists(f"{tasks}/{pid}/children"):
        raise gone
    return found


def _psutil_call(method: Any) -> Any:
    import psutil

    try:
        return method()
    except psutil.Error as bad:
        raise SourceUnavailable(str(bad)) from bad
