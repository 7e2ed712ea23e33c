"""The memory of each cell: at its start, at its peak, and at its end.

Host memory is that of the kernel process without its children. If the process's peak resident memory (VmHWM) rose
during the cell, that value is the exact peak of the cell, even if native code held the GIL; otherwise the peak is the
highest sample. GPU memory comes from TensorFlow's allocators in the same way: exact if their peak rose, otherwise the
highest sample. Values of several GPU devices are added up. The sum of the peaks is an upper bound: the devices may have
peaked at different times.

Cells that run concurrently (threads, subshells) each measure the whole process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...memory.limits import kept_bytes
from ...training.gpu_memory import DeviceMemory

Devices = tuple[DeviceMemory, ...]


class Measured(NamedTuple):
    """Bytes at the start of a cell, the highest during it, and at its end; None if unknown."""

    start_bytes: int | None = None
    highest_bytes: int | None = None
    end_bytes: int | None = None

    @property
    def peak_bytes(self) -> int | None:
        """How far memory rose above the value at the start."""
        return self._above_start(self.highest_bytes)

    @property
    def kept_bytes(self) -> int | None:
        """Memory at the end minus memory at the start; may be negative."""
        return self._above_start(self.end_bytes)

    def _above_start(self, value: int | None) -> int | None:
        return None if value is None or self.start_bytes is None else value - self.start_bytes


class CellMemory(NamedTuple):
    """Host and GPU memory of one cell."""

    host: Measured
    gpu: Measured

    @property
    def rise_bytes(self) -> int:
        """The larger of the two rises, for sorting; 0 if neither is known."""
        return max(self.host.peak_bytes or 0, self.gpu.peak_bytes or 0)


@dataclass(eq=False, slots=True)
class RunningCell:
    """One running cell: memory at its start, and the highest samples since. `kept_bytes`: without pages of files."""

    rss_bytes: int | None
    peak_bytes: int | None
    gpu: Devices | None
    kept_bytes: int | None = None
    highest_rss_bytes: int = 0
    highest_gpu_bytes: dict[str, int] = field(default_factory=dict)


class CellMeter:
    """Measures cells.

    Args:
        host: Reads the current metrics of this process.
        gpu: Reads TensorFlow's allocators; returns None while TensorFlow has created no GPU device.
    """

    def __init__(
        self, host: Callable[[], Mapping[str, float]], gpu: Callable[[], Devices | None]
    ) -> None:
        self._host = host
        self._gpu = gpu
        self._running: list[RunningCell] = []

    def begin(self) -> RunningCell:
        """Start measuring a cell."""
        now = self._host()
        kept = kept_bytes(now)
        stretch = RunningCell(*_host(now), self._gpu(), None if kept is None else int(kept))
        self._running.append(stretch)
        return stretch

    def sampled_host(self, rss_bytes: float | None) -> None:
        """Take a sample of this process's resident memory. Thread-safe."""
        if rss_bytes is not None:
            for stretch in tuple(self._running):
                stretch.highest_rss_bytes = max(stretch.highest_rss_bytes, int(rss_bytes))

    def sampled_gpu(self, devices: Devices) -> None:
        """Take a sample of TensorFlow's allocators. Thread-safe."""
        for stretch in tuple(self._running):
            highest = stretch.highest_gpu_bytes
            for one in devices:
                highest[one.device] = max(highest.get(one.device, 0), one.in_use_bytes)

    def end(self, stretch: RunningCell) -> CellMemory:
        """Stop measuring a cell, and return its memory."""
        if stretch in self._running:
            self._running.remove(stretch)
        rss, peak = _host(self._host())
        highest = _host_highest(stretch, rss, peak)
        return CellMemory(
            Measured(stretch.rss_bytes, highest, rss), _of_devices(stretch, self._gpu())
        )


def _host(metrics: Mapping[str, float]) -> tuple[int | None, int | None]:
    """Resident memory and its peak so far, in bytes."""
    rss, peak = metrics.get("process.rss_bytes"), metrics.get("process.peak_bytes")
    return None if rss is None else int(rss), None if peak is None else int(peak)


def _host_highest(stretch: RunningCell, rss: int | None, peak: int | None) -> int | None:
    if peak is not None and stretch.peak_bytes is not None and peak > stretch.peak_bytes:
        return peak
    if rss is None or stretch.rss_bytes is None:
        return None
    seen = max(stretch.highest_rss_bytes, stretch.rss_bytes, rss)
    # Linux counts resident memory per CPU and may be off by a few hundred KiB; the peak is an upper bound.
    return seen if peak is None else min(seen, peak)


def _of_devices(stretch: RunningCell, end: Devices | None) -> Measured:
    """GPU memory, summed over the devices that could be read."""
    if end is None:
        return Measured()
    # A device created during this cell had no allocator at its start, so it counts from 0.
    begun = {one.device: one for one in stretch.gpu or ()}
    known = [one for one in end if stretch.gpu is None or one.device in begun]
    if not known:
        return Measured()
    start = highest = last = 0
    for one in known:
        before = begun.get(one.device, DeviceMemory(one.device, 0, 0))
        start += before.in_use_bytes
        last += one.in_use_bytes
        if one.peak_bytes > before.peak_bytes:
            highest += one.peak_bytes
        else:
            seen = stretch.highest_gpu_bytes.get(one.device, 0)
            highest += max(seen, before.in_use_bytes, one.in_use_bytes)
    return Measured(start, highest, last)
