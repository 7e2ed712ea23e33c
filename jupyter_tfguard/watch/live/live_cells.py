"""Memory of cells, cells that ran out of memory, and GPU devices, from the events of a kernel (not trusted)."""

from __future__ import annotations

import time
from typing import Any

from ...record.events import CellEnd, CellStart, Event, GpuDevice, MemoryStopped, Notice

KEPT = 5
_DEVICES = 8

# Resident memory of the kernel as measured by the watcher, and its peak; bytes, None = unknown.
Resident = tuple[int | None, int | None]


class CellReader:
    """Follows the cells of one kernel: those that grew most, and the running one.

    If several run concurrently, the newest is shown.
    """

    def __init__(self) -> None:
        self._ended: list[dict[str, Any]] = []
        self._running: CellStart | None = None
        self._highest_bytes = 0  # since it began

    def take(self, event: Event) -> None:
        """Process the next event."""
        if isinstance(event, CellStart):
            self._running, self._highest_bytes = event, 0
        elif isinstance(event, CellEnd):
            self._end(event)

    def _end(self, event: CellEnd) -> None:
        running = self._running
        mine = running is not None and running.execution_count == event.execution_count
        start, gpu_start = event.rss_start_bytes, event.gpu_start_bytes
        cell = {
            "execution_count": event.execution_count,
            "head": running.head if mine and running is not None else None,
            "running": False,
            "seconds": event.seconds,
            "host_peak_bytes": _above(event.peak_bytes, start),
            "host_kept_bytes": _above(event.rss_bytes, start),
            "gpu_peak_bytes": _above(event.gpu_peak_bytes, gpu_start),
            "gpu_kept_bytes": _above(event.gpu_bytes, gpu_start),
        }
        if mine:
            self._running = None
        self._ended = sorted([*self._ended, cell], key=_rise, reverse=True)[:KEPT]

    def cells(self, resident: Resident) -> tuple[dict[str, Any], ...]:
        """The five cells that grew most, largest growth first, always including the running one; in the panel's format.

        Args:
            resident: Current memory, from which the growth of the running cell is computed.
        """
        if self._running is None:
            return tuple(self._ended)
        running, (rss, peak) = self._running, resident
        self._highest_bytes = max(self._highest_bytes, rss or 0)
        highest: int | None = self._highest_bytes or None
        if peak is not None and running.peak_bytes is not None and peak > running.peak_bytes:
            highest = peak  # the peak rose during this cell
        now = {
            "execution_count": running.execution_count,
            "head": running.head,
            "running": True,
            "seconds": max(0.0, time.time() - (running.time or time.time())),
            "host_peak_bytes": _above(highest, running.rss_bytes),
            "host_kept_bytes": None,
            "gpu_peak_bytes": None,
            "gpu_kept_bytes": None,
        }
        largest = self._ended[: KEPT - 1]
        return tuple(sorted([*largest, now], key=_rise, reverse=True))


class OutOfMemoryReader:
    """Keeps the latest event of one kind: memory ran out, or will, while the kernel is still running.

    Args:
        kind: Its class.
    """

    def __init__(self, kind: type[Notice]) -> None:
        self._kind = kind
        self.latest: dict[str, Any] | None = None

    def take(self, event: Event) -> None:
        """Process the next event."""
        if isinstance(event, self._kind) and event.time is not None and event.lines:
            self.latest = {
                "time": event.time,
                "execution_count": event.execution_count,
                "what": event.what if isinstance(event, MemoryStopped) else None,
                "lines": list(event.lines),
            }


class GpuReader:
    """Follows what one kernel reports about its GPU devices."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Any]] = {}
        self._memory: list[dict[str, Any]] = []

    def take(self, event: Event) -> None:
        """Process the next event."""
        if isinstance(event, GpuDevice) and event.device and len(self._made) < _DEVICES:
            self._made[event.device] = {"limit_bytes": event.limit_bytes, "bus_id": event.bus_id}

    def take_memory(self, devices: list[dict[str, Any]] | None) -> None:
        """Process the newest numbers of the allocators; None if there are no new ones."""
        if devices is not None:
            self._memory = devices

    @property
    def memory(self) -> tuple[dict[str, Any], ...]:
        """The devices, with what TensorFlow logged when it created them."""
        unknown = {"limit_bytes": None, "bus_id": None}
        return tuple(one | self._made.get(one["device"], unknown) for one in self._memory)


def _rise(cell: dict[str, Any]) -> int:
    return max(cell["host_peak_bytes"] or 0, cell["gpu_peak_bytes"] or 0)


def _above(value: int | None, start: int | None) -> int | None:
    return None if value is None or start is None else value - start
