"""Limits of memory that a process was given by ``ulimit``, a batch system or itself, and what they count.

Not here: limits of threads and files (:mod:`~.task_limits`); RLIMIT_RSS and RLIMIT_MEMLOCK, which bind nothing of a kernel's arrays.
"""

from __future__ import annotations

import re
import time

from ..errors import SourceUnavailable
from ..metrics import Metric, Unit
from ..units import KIB
from .procfs import read_small
from .task_limits import soft_limits

_LIMITS_EVERY_SECONDS = 9.5
_USED_EVERY_SECONDS = 0.95
# VmSize:	 1234567 kB, VmData:	  345678 kB
_STATUS = re.compile(rb"^(VmSize|VmData):\s+(\d+) kB$", re.MULTILINE)
# What the limit is called in /proc/[pid]/limits, the metric of the limit, what it counts and the metric of that.
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
    """Limits of address space and data of one process, and what is in use of them.

    Source: soft limits in ``/proc/[pid]/limits``, getrlimit(2), read again every ten seconds; ``/proc/[pid]/status``, read once
    a second, and only where there is a limit. RLIMIT_AS counts all that is mapped, files and what was only reserved included;
    RLIMIT_DATA counts private memory that can be written. Several threads may ask.

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
        self._limits: dict[str, int | None] = {}
        self._values: dict[str, float] = {}
        self._limits_next = self._used_next = 0.0

    def collect(self) -> dict[str, float]:
        """Value per metric name; empty without a limit, and of a limit that is not set nothing is told.

        Raises:
            SourceUnavailable: There is no such process, or this machine has no procfs.
        """
        now = time.monotonic()
        if now >= self._limits_next:
            limits = soft_limits(self._root, self._pid)
            if limits != self._limits:
                self._limits, self._used_next = limits, now
            self._limits_next = now + _LIMITS_EVERY_SECONDS
        if now >= self._used_next:
            self._values = self._read()
            self._used_next = now + _USED_EVERY_SECONDS
        return self._values

    def _read(self) -> dict[str, float]:
        limits = self._limits  # another thread may put new ones in their place meanwhile
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
