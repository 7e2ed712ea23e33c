"""The memory of each cell: what was there at its start, the highest while it ran, and what stayed behind.

Host memory is the kernel process's own, without its children. Where the process's highest resident memory (VmHWM) rose
within the cell, it is the cell's peak, exactly, also while native code held the GIL; else the highest sample within the
cell is. GPU memory is what TensorFlow's allocators say, likewise: exact where their peak rose, else the highest sample. Of
several GPU devices the sums are given, the sum of the peaks too, which need not have been at one moment.

Cells that run beside each other (threads, subshells) each see all that the process does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..training.gpu_memory import DeviceMemory

Devices = tuple[DeviceMemory, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes at the start of a cell, the highest within it, and at its end; None unknown."""

    start_bytes: int | None = None
    highest_bytes: int | None = None
    end_bytes: int | None = None

    @property
    def peak_bytes(self) -> int | None:
        """How far memory rose above the value at the start."""
        return self._above_start(self.highest_bytes)

    @property
    def kept_bytes(self) -> int | None:
        """How much more there was at the end than at the start; may be negative."""
        return self._above_start(self.end_bytes)

    def _above_start(self, value: int | None) -> int | None:
        return None if value is None or self.start_bytes is None else value - self.start_bytes


@dataclass(frozen=True, slots=True)
class CellMemory:
    """What a cell did to both kinds of memory."""

    host: Measured
    gpu: Measured

    @property
    def rise_bytes(self) -> int:
        """The larger of the two rises: what lists are sorted by; 0 where neither is known."""
        return max(self.host.peak_bytes or 0, self.gpu.peak_bytes or 0)


@dataclass(eq=False, slots=True)
class Stretch:
    """One cell while it runs: what was known at its start, and the highest samples since."""

    rss_bytes: int | None
    peak_bytes: int | None
    gpu: Devices | None
    highest_rss_bytes: int = 0
    highest_gpu_bytes: dict[str, int] = field(default_factory=dict)


class CellMeter:
    """Measures cells.

    Args:
        host: The metrics of this process, fresh.
        gpu: What TensorFlow's allocators say; None while TensorFlow has made no GPU device.
    """

    def __init__(
        self, host: Callable[[], Mapping[str, float]], gpu: Callable[[], Devices | None]
    ) -> None:
        self._host = host
        self._gpu = gpu
        self._running: list[Stretch] = []

    def begin(self) -> Stretch:
        """A cell begins."""
        stretch = Stretch(*_host(self._host()), self._gpu())
        self._running.append(stretch)
        return stretch

    def sampled_host(self, rss_bytes: float | None) -> None:
        """A sample of this process's resident memory; from any thread."""
        if rss_bytes is not None:
            for stretch in tuple(self._running):
                stretch.highest_rss_bytes = max(stretch.highest_rss_bytes, int(rss_bytes))

    def sampled_gpu(self, devices: Devices) -> None:
        """A sample of TensorFlow's allocators; from any thread."""
        for stretch in tuple(self._running):
            highest = stretch.highest_gpu_bytes
            for one in devices:
                highest[one.device] = max(highest.get(one.device, 0), one.in_use_bytes)

    def end(self, stretch: Stretch) -> CellMemory:
        """The cell has ended: what it did to memory."""
        if stretch in self._running:
            self._running.remove(stretch)
        rss, peak = _host(self._host())
        highest = _host_highest(stretch, rss, peak)
        return CellMemory(
            Measured(stretch.rss_bytes, highest, rss), _of_devices(stretch, self._gpu())
        )


def _host(metrics: Mapping[str, float]) -> tuple[int | None, int | None]:
    """Resident memory and its highest so far."""
    rss, peak = metrics.get("process.rss_bytes"), metrics.get("process.peak_bytes")
    return None if rss is None else int(rss), None if peak is None else int(peak)


def _host_highest(stretch: Stretch, rss: int | None, peak: int | None) -> int | None:
    if peak is not None and stretch.peak_bytes is not None and peak > stretch.peak_bytes:
        return peak
    if rss is None or stretch.rss_bytes is None:
        return None
    seen = max(stretch.highest_rss_bytes, stretch.rss_bytes, rss)
    # Linux keeps resident memory per processor and may be some hundred KiB off; the peak bounds it.
    return seen if peak is None else min(seen, peak)


def _of_devices(stretch: Stretch, end: Devices | None) -> Measured:
    """GPU memory: sums over the devices that answered."""
    if end is None:
        return Measured()
    # A device that was made in this cell began with nothing: it had no allocator.
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
