"""Memory of cells, cells that ran out of memory, and GPU devices, from the events of a kernel (not trusted)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ..decode import number_of, size_of, text_of
from ..record.newest import is_device

KEPT = 5
LINES = 8
_HEAD_LIMIT = 80
_LINE_LIMIT = 2000  # a line may contain the path of a saved model twice
_BUS_LIMIT = 20
_WHAT_LIMIT = 20
_DEVICES = 8
_COUNT_LIMIT = 1_000_000_000

Event = dict[str, Any]
# Resident memory of the kernel as measured by the watcher, and its peak; bytes, None = unknown.
Resident = tuple[int | None, int | None]


@dataclass
class _Running:
    """A cell that has begun."""

    count: int | None
    head: str | None
    began: float  # Unix seconds
    rss_bytes: int | None
    peak_bytes: int | None
    highest_bytes: int = 0


class CellReader:
    """Follows the cells of one kernel: those that grew most, and the running one.

    If several run concurrently, the newest is shown.
    """

    def __init__(self) -> None:
        self._ended: list[Event] = []
        self._running: _Running | None = None

    def take(self, event: Event) -> None:
        """Process the next event."""
        kind = event.get("kind")
        if kind == "cell_start":
            self._running = _Running(
                _count(event.get("execution_count")),
                text_of(event.get("head"), _HEAD_LIMIT),
                number_of(event.get("t")) or time.time(),
                size_of(event.get("rss_bytes")),
                size_of(event.get("peak_bytes")),
            )
        elif kind == "cell_end":
            self._end(event)

    def _end(self, event: Event) -> None:
        count, running = _count(event.get("execution_count")), self._running
        mine = running is not None and running.count == count
        start, gpu_start = (
            size_of(event.get("rss_start_bytes")),
            size_of(event.get("gpu_start_bytes")),
        )
        cell = {
            "execution_count": count,
            "head": running.head if mine and running is not None else None,
            "running": False,
            "seconds": number_of(event.get("seconds")),
            "host_peak_bytes": _above(size_of(event.get("peak_bytes")), start),
            "host_kept_bytes": _above(size_of(event.get("rss_bytes")), start),
            "gpu_peak_bytes": _above(size_of(event.get("gpu_peak_bytes")), gpu_start),
            "gpu_kept_bytes": _above(size_of(event.get("gpu_bytes")), gpu_start),
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
        running.highest_bytes = max(running.highest_bytes, rss or 0)
        highest: int | None = running.highest_bytes or None
        if peak is not None and running.peak_bytes is not None and peak > running.peak_bytes:
            highest = peak  # the peak rose during this cell
        now = {
            "execution_count": running.count,
            "head": running.head,
            "running": True,
            "seconds": max(0.0, time.time() - running.began),
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
        kind: ``gpu_oom``, ``memory_stop`` or ``memory_growth``.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.latest: dict[str, Any] | None = None

    def take(self, event: Event) -> None:
        """Process the next event."""
        if event.get("kind") != self._kind:
            return
        found, when = event.get("lines"), number_of(event.get("t"))
        kept = found[:LINES] if isinstance(found, list) else []
        lines = [line for line in (text_of(one, _LINE_LIMIT) for one in kept) if line]
        if when is not None and lines:
            self.latest = {
                "time": when,
                "execution_count": _count(event.get("execution_count")),
                "what": text_of(event.get("what"), _WHAT_LIMIT),
                "lines": lines,
            }


class GpuReader:
    """Follows what one kernel reports about its GPU devices."""

    def __init__(self) -> None:
        self._made: dict[str, Event] = {}
        self._memory: list[dict[str, Any]] = []

    def take(self, event: Event) -> None:
        """Process the next event."""
        if event.get("kind") == "gpu_device" and is_device(event) and len(self._made) < _DEVICES:
            self._made[event["device"]] = {
                "limit_bytes": size_of(event.get("limit_bytes")),
                "bus_id": text_of(event.get("bus_id"), _BUS_LIMIT),
            }

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


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _COUNT_LIMIT else None
