"""The memory of this kernel: what samples it, and what it is right now."""

from __future__ import annotations

import contextlib
import os

from ..collectors.cgroup import CgroupCollector
from ..collectors.host import HostCollector
from ..collectors.process import ProcessCollector
from ..collectors.ulimits import UlimitCollector
from ..errors import SourceUnavailable
from ..sampler import Collector, Sampler
from ..training.gpu_memory import DeviceMemory, GpuAllocators


class KernelMemory:
    """Asks the system and TensorFlow's allocators about this process. What is not known is left out.

    Attributes:
        cgroup: Its memory group, from :meth:`sampler` on; None where there is none.
        allocators: Of TensorFlow's GPU devices.
    """

    def __init__(self) -> None:
        self.cgroup: CgroupCollector | None = None
        self.allocators = GpuAllocators()
        self._ulimits = UlimitCollector(os.getpid())
        self._process: ProcessCollector | None = None

    def sampler(self) -> Sampler:
        """Samples all that this system tells of this process's memory; its metrics are the columns of the recording."""
        collectors = _collectors(os.getpid())
        if self.ulimits():  # who sets a limit later is seen by the server
            collectors.append(self._ulimits)
        with contextlib.suppress(SourceUnavailable):
            self._process = ProcessCollector(os.getpid())
        self.cgroup = next((c for c in collectors if isinstance(c, CgroupCollector)), None)
        return Sampler(collectors)

    def process(self) -> dict[str, float]:
        """The metrics of this process now; empty where the system has none, and after :meth:`close`."""
        if self._process is None:
            return {}
        try:
            return self._process.collect(fresh=True)
        except SourceUnavailable:
            return {}

    def rss_bytes(self) -> int | None:
        """Resident memory of this kernel now; None when unknown."""
        value = self.process().get("process.rss_bytes")
        return None if value is None else int(value)

    def ulimits(self) -> dict[str, float]:
        """Limits of this process's memory and what is in use of them; empty without any."""
        try:
            return self._ulimits.collect()
        except SourceUnavailable:
            return {}

    def gpu(self) -> tuple[DeviceMemory, ...]:
        """What TensorFlow's allocators say now; empty while TensorFlow has made no GPU device, or tells nothing."""
        return self.allocators.read() or ()

    def close(self) -> None:
        """Give the descriptors back."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _collectors(pid: int) -> list[Collector]:
    found: list[Collector] = []
    for make in (lambda: ProcessCollector(pid), HostCollector, lambda: CgroupCollector(pid)):
        with contextlib.suppress(SourceUnavailable):
            found.append(make())
    return found
