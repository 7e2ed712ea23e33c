"""Memory and swap of the machine, its out-of-memory kills, and its memory pressure."""

from __future__ import annotations

import re
import time
from typing import Any

from ..errors import SourceUnavailable
from ..metrics import Metric, Unit
from ..procfs import KeptFile, read_small
from ..units import KIB

_SLOW_EVERY_SECONDS = 1.0
# some avg10=0.12 avg60=0.03 avg300=0.00 total=1234
_PRESSURE = re.compile(rb"^some avg10=([0-9.]+)", re.MULTILINE)
# oom_kill 3
_KILLS = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_AVAILABLE = re.compile(rb"^MemAvailable: +(\d+) kB$", re.MULTILINE)
# MemTotal:       16215404 kB
_SIZE = re.compile(rb"^(MemTotal|MemAvailable|SwapTotal|SwapFree): +(\d+) kB$", re.MULTILINE)


class HostCollector:
    """Memory of the machine.

    Source: ``/proc/meminfo`` (proc_meminfo(5)), ``oom_kill`` of ``/proc/vmstat`` (whole machine, including kills
    inside cgroups), ``some avg10`` of ``/proc/pressure/memory``; psutil without procfs. Only the available memory is
    updated each time; the rest at most once a second, because kills and pressure cost 100 microseconds.

    Args:
        root: Prefix of ``/proc``.

    Raises:
        SourceUnavailable: Neither procfs nor psutil reports the machine's memory.
    """

    metrics: tuple[Metric, ...] = (
        Metric(
            "host.available_bytes", "Available memory", Unit.BYTES, "/proc/meminfo, MemAvailable"
        ),
        Metric("host.total_bytes", "Memory of the machine", Unit.BYTES, "/proc/meminfo, MemTotal"),
        Metric(
            "host.swap_used_bytes", "Swap in use", Unit.BYTES, "/proc/meminfo, SwapTotal - SwapFree"
        ),
        Metric("host.swap_total_bytes", "Swap", Unit.BYTES, "/proc/meminfo, SwapTotal"),
        Metric(
            "host.oom_kill_count",
            "Out-of-memory kills since boot",
            Unit.COUNT,
            "/proc/vmstat, oom_kill",
        ),
        Metric(
            "host.pressure_some_fraction",
            "Share of time in which some task waited for memory",
            Unit.FRACTION,
            "/proc/pressure/memory, some avg10",
        ),
    )

    def __init__(self, *, root: str = "") -> None:
        self._root = root
        self._meminfo: KeptFile | None = None
        self._slow_next = 0.0
        self._slow_values: dict[str, float] = {}
        try:
            self._meminfo = KeptFile(f"{root}/proc/meminfo", 8192, stays_open=False)
        except SourceUnavailable:
            _psutil_memory()

    def collect(self) -> dict[str, float]:
        """Value per metric name; unknown values are left out.

        Raises:
            SourceUnavailable: The machine's memory cannot be read.
        """
        if self._meminfo is None:
            return _psutil_memory()
        now, content = time.monotonic(), self._meminfo.read_bytes()
        if now >= self._slow_next:
            self._slow_next = now + _SLOW_EVERY_SECONDS
            self._slow_values = _meminfo_values(content) | _slow_values(self._root)
            return self._slow_values.copy()
        found = _AVAILABLE.search(content)
        if found is None:
            return self._slow_values | _meminfo_values(content)
        return {**self._slow_values, "host.available_bytes": int(found[1]) * KIB}

    def close(self) -> None:
        """Close the descriptor."""
        if self._meminfo is not None:
            self._meminfo.close()


def _slow_values(root: str) -> dict[str, float]:
    values: dict[str, float] = {}
    if found := _search(_KILLS, f"{root}/proc/vmstat"):  # Linux 4.13 and later
        values["host.oom_kill_count"] = int(found[1])
    # Linux 4.20 and later, unless disabled at boot
    if found := _search(_PRESSURE, f"{root}/proc/pressure/memory"):
        values["host.pressure_some_fraction"] = float(found[1]) / 100
    return values


def _search(pattern: re.Pattern[bytes], path: str) -> re.Match[bytes] | None:
    try:
        return pattern.search(read_small(path))
    except OSError:
        return None


def _meminfo_values(content: bytes) -> dict[str, float]:
    sizes = {name.decode(): int(size) * KIB for name, size in _SIZE.findall(content)}
    values: dict[str, float] = {}
    for name, field in (
        ("host.available_bytes", "MemAvailable"),
        ("host.total_bytes", "MemTotal"),
        ("host.swap_total_bytes", "SwapTotal"),
    ):
        if field in sizes:
            values[name] = sizes[field]
    if "SwapTotal" in sizes and "SwapFree" in sizes:
        values["host.swap_used_bytes"] = sizes["SwapTotal"] - sizes["SwapFree"]
    return values


def _psutil_memory() -> dict[str, float]:
    import psutil

    try:
        memory: Any = psutil.virtual_memory()
        swap: Any = psutil.swap_memory()
    except (psutil.Error, OSError, NotImplementedError) as bad:
        raise SourceUnavailable(f"the machine's memory: {bad}") from bad
    return {
        "host.available_bytes": memory.available,
        "host.total_bytes": memory.total,
        "host.swap_used_bytes": swap.used,
        "host.swap_total_bytes": swap.total,
    }
