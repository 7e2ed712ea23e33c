"""The memory of this kernel: its sampler and its current values."""

from __future__ import annotations

import contextlib
import os

from ...collectors.cgroup import CgroupCollector
from ...collectors.host import HostCollector
from ...collectors.process import ProcessCollector
from ...collectors.ulimits import UlimitCollector
from ...errors import SourceUnavailable
from ...memory.limits import kept_bytes
from ...sampler import Collector, Sampler
from ...training.gpu_memory import DeviceMemory, GpuAllocators


class KernelMemory:
    """Reads the memory of this process from the system and TensorFlow's allocators. Unknown values are left out.

    Attributes:
        cgroup: The memory group of this process, set by :meth:`sampler`; None if there is none.
        allocators: The allocators of TensorFlow's GPU devices.
    """

    def __init__(self) -> None:
        self.cgroup: CgroupCollector | None = None
        self.allocators = GpuAllocators()
        self._ulimits = UlimitCollector(os.getpid())
        self._process: ProcessCollector | None = None

    def sampler(self) -> Sampler:
        """A sampler of all available memory metrics of this process; its metrics are the columns of the recording."""
        collectors = _collectors(os.getpid())
        if self.ulimits():  # the server sees a limit that is set later
            collectors.append(self._ulimits)
        self._process = next((c for c in collectors if isinstance(c, ProcessCollector)), None)
        self.cgroup = next((c for c in collectors if isinstance(c, CgroupCollector)), None)
        return Sampler(collectors)

    def process(self) -> dict[str, float]:
        """The current metrics of this process; empty if the system has none, and after :meth:`close`."""
        if self._process is None:
            return {}
        try:
            return self._process.collect(fresh=True)
        except SourceUnavailable:
            return {}

    def now(self) -> dict[str, int | None]:
        """Current memory of this kernel, for an event: ``rss_bytes``, ``kept_bytes``; None if unknown."""
        values = self.process()
        found = {"rss_bytes": values.get("process.rss_bytes"), "kept_bytes": kept_bytes(values)}
        return {name: None if size is None else int(size) for name, size in found.items()}

    def ulimits(self) -> dict[str, float]:
        """The ulimits on this process's memory and the use of each; empty if none is set."""
        try:
            return self._ulimits.collect()
        except SourceUnavailable:
            return {}

    def gpu(self) -> tuple[DeviceMemory, ...]:
        """Current readings of TensorFlow's allocators; empty if there is no GPU device yet or none can be read."""
        return self.allocators.read() or ()

    def close(self) -> None:
        """Close the file descriptors."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _collectors(pid: int) -> list[Collector]:
    found: list[Collector] = []
    for make in (lambda: ProcessCollector(pid), HostCollector, lambda: CgroupCollector(pid)):
        with contextlib.suppress(SourceUnavailable):
            found.append(make())
    return found
