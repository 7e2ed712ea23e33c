"""Tracks any number of kernel processes: threads take the samples, run the slow polls, and report crashes.

The host calls :meth:`Watcher.watch` for each process, and :meth:`Watcher.ended` when one has ended; requested ends are
not reported. If the host did not detect an end (no pidfd), the sampler does, and calls `on_gone`.

Three descriptors per kernel stay open: pidfd, statm, folder of its recording. If no descriptor is free, the kernel is
still tracked: its files are opened for each read, and its end is detected at the next sample instead of at once.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from ..record.facts import ExitFacts
from .crash.crash import Crash
from .crash.crashes import Crashes
from .crash.process_handle import from_returncode
from .gpu.gpu_helper import Gpus
from .gpu.gpu_map import GpuMap
from .hang.hangs import Hangs
from .live.live_feed import LiveFeed
from .live.shared_group import SharedGroups
from .monitored import Kernel, MonitoredKernel
from .polling import PollThread, SamplingThread, SlowPoll


class Watcher:
    """Tracks kernels until :meth:`stop`.

    Args:
        recordings: Folder of the kernels' recordings.
        on_crash: Called in a thread of the watcher, one crash at a time.
        on_gone: Called in the sampler's thread when it finds an end that the host did not report.
        gpus: State of the GPUs, recorded with a crash.
        busy_hertz, idle_hertz: Samples a second.
        hang_seconds: How long a kernel must make no progress to be reported.

    Attributes:
        hangs: Detects kernels that hang, and captures their stacks.
        gpu_map: GPU memory per kernel; the caller passes each new state of the GPUs to its `take`.
    """

    def __init__(
        self,
        recordings: Path,
        on_crash: Callable[[Crash], None],
        on_gone: Callable[[MonitoredKernel], None],
        *,
        gpus: Callable[[], Gpus] = lambda: Gpus("unavailable", "not read"),
        busy_hertz: float = 10.0,
        idle_hertz: float = 1.0,
        hang_seconds: float = 300.0,
    ) -> None:
        self._watched: dict[MonitoredKernel, None] = {}
        self._lock = threading.Lock()
        self._started = False
        self._groups = SharedGroups()
        self.gpu_map = GpuMap(lambda: self.monitored_kernels)
        self._crashes = Crashes(recordings, on_crash, gpus, self.gpu_map)
        busy_seconds = 1 / busy_hertz
        idle_seconds = max(1 / idle_hertz, busy_seconds)
        self._sampler = SamplingThread(
            lambda: self.monitored_kernels, on_gone, busy_seconds, idle_seconds
        )
        self._slow_poll = SlowPoll(lambda: self.monitored_kernels, self._take_child_kill)
        self._live = LiveFeed(recordings, lambda: self.monitored_kernels)
        self.hangs = Hangs(recordings, lambda: self.monitored_kernels, gpus, hang_seconds)

    def watch(self, pid: int, kernel: Kernel) -> MonitoredKernel:
        """Start tracking a process.

        Raises:
            SourceUnavailable: There is no such process.
        """
        monitored = MonitoredKernel(pid, kernel, self._groups)
        with self._lock:
            self._watched[monitored] = None
            if not self._started:
                self._started = True
                for thread in self._threads:
                    thread.start()
        for thread in self._threads:
            thread.wake()
        return monitored

    @property
    def _threads(self) -> tuple[PollThread, ...]:
        return self._live, self._sampler, self._slow_poll, self.hangs

    @property
    def monitored_kernels(self) -> tuple[MonitoredKernel, ...]:
        """All kernels that are tracked now."""
        with self._lock:
            return tuple(self._watched)

    def drop(self, monitored: MonitoredKernel) -> None:
        """Stop tracking a process; nothing is reported."""
        self._forget(monitored)
        monitored.close()

    def _forget(self, monitored: MonitoredKernel) -> None:
        with self._lock:
            self._watched.pop(monitored, None)

    def ended(
        self,
        monitored: MonitoredKernel,
        returncode: Callable[[], int | None] | None = None,
        *,
        asked: bool = False,
    ) -> Future[None] | None:
        """Report the end of a process. Fast: reads the exit status at once, the rest in a thread.

        Args:
            monitored: The kernel that ended.
            returncode: Reads the return code from the parent process if nothing better is readable; it may reap. None if
                this process did not start it.
            asked: The end was requested; the caller passes such an end only if the kernel hung before or was culled.

        Returns:
            Completes once the crash was reported; None if the watcher is stopping.
        """
        died = time.time()

        by_starter = None if returncode is None else functools.partial(_by_starter, returncode)
        ended = monitored.handle.end()
        if ended is None and by_starter is not None:
            ended = by_starter()
        self._forget(monitored)
        return self._crashes.accept(
            monitored,
            ended,
            died,
            asked=asked,
            by_starter=by_starter,
            other_kernel_bytes=self._sizes_without(monitored),
        )

    def _sizes_without(self, monitored: MonitoredKernel) -> tuple[int, ...]:
        """Resident memory of all other tracked kernels, as far as it is known."""
        samples = [other.latest for other in self.monitored_kernels if other is not monitored]
        sizes = [sample.values.get("process.rss_bytes") for sample in samples if sample is not None]
        return tuple(int(size) for size in sizes if size is not None and math.isfinite(size))

    def _take_child_kill(self, monitored: MonitoredKernel) -> None:
        kill = monitored.child_kills.take(time.time())
        if kill is not None:
            self._crashes.accept_child(monitored, kill, self._sizes_without(monitored))

    def stop(self) -> None:
        """Stop tracking; pending crashes are reported first (at most a second each)."""
        for thread in self._threads:
            thread.stop()
        self._crashes.stop()
        with self._lock:
            watched, self._watched = self._watched, {}
        for monitored in watched:
            monitored.close()


def _by_starter(returncode: Callable[[], int | None]) -> ExitFacts | None:
    code = returncode()
    return None if code is None else from_returncode(code)
