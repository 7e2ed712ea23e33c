"""Watches any number of kernel processes: threads take the samples, look at what is read rarely, and hand on the deaths.

The host says which processes to watch and when one has ended (:meth:`Watcher.ended`); deaths that were asked for are not
handed on. An end that the host did not notice (no pidfd) is noticed by the sampler, which tells the host through `on_gone`.

Three descriptors are kept for a kernel: pidfd, statm, folder of its recording. A kernel for which none is left is watched
as well: its files are opened for each reading, and its death is noticed at the next sample instead of at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from ..record.facts import ExitFacts
from .death import Death
from .deaths import Deaths
from .gpu_helper import Gpus
from .gpu_map import GpuMap
from .hangs import Hangs
from .live_feed import LiveFeed
from .monitored import Kernel, MonitoredKernel
from .polling import Loop, Sampler, SlowPoll
from .process_handle import from_returncode
from .shared_group import SharedGroups


class Watcher:
    """Watches kernels until :meth:`stop`.

    Args:
        recordings: Folder of the kernels' recordings.
        on_death: Called in a thread of the watcher's, one death at a time.
        on_gone: Called in the sampler's thread when it finds an unannounced end.
        gpus: State of the GPUs, to be kept with a death.
        busy_hertz, idle_hertz: Samples a second.
        hang_seconds: How long a kernel must have stood still to be told of.

    Attributes:
        hangs: Detects kernels that hang, and takes their stacks.
        gpu_map: Who holds what on the GPUs; whoever reads them hands it what they tell.
    """

    def __init__(
        self,
        recordings: Path,
        on_death: Callable[[Death], None],
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
        self._deaths = Deaths(recordings, on_death, gpus, self.gpu_map)
        busy_seconds = 1 / busy_hertz
        idle_seconds = max(1 / idle_hertz, busy_seconds)
        self._sampler = Sampler(lambda: self.monitored_kernels, on_gone, busy_seconds, idle_seconds)
        self._slow_poll = SlowPoll(lambda: self.monitored_kernels, self._take_child_kill)
        self._live = LiveFeed(recordings, lambda: self.monitored_kernels)
        self.hangs = Hangs(recordings, lambda: self.monitored_kernels, gpus, hang_seconds)

    def watch(self, pid: int, kernel: Kernel) -> MonitoredKernel:
        """Begin to watch a process.

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
    def _threads(self) -> tuple[Loop, ...]:
        return self._live, self._sampler, self._slow_poll, self.hangs

    @property
    def monitored_kernels(self) -> tuple[MonitoredKernel, ...]:
        """All that are watched now."""
        with self._lock:
            return tuple(self._watched)

    def drop(self, monitored: MonitoredKernel) -> None:
        """Stop watching a process; nothing is reported."""
        self._forget(monitored)
        monitored.close()

    def _forget(self, monitored: MonitoredKernel) -> None:
        with self._lock:
            self._watched.pop(monitored, None)

    def ended(
        self,
        monitored: MonitoredKernel,
        returncode: Callable[[], int | None] = lambda: None,
        *,
        asked: bool = False,
    ) -> Future[None] | None:
        """Say that a process has ended, and that it is to be reported. Quick: the exit status is read at once, the rest
        in a thread.

        Args:
            monitored: Of the process.
            returncode: Asks its starter, should nothing better be readable; it may reap.
            asked: It was ended on request; such an end is reported only when the kernel stood still before.

        Returns:
            Done once the death was handed on; None when the watcher is stopping.
        """
        died = time.time()

        def by_starter() -> ExitFacts | None:
            told = returncode()
            return None if told is None else from_returncode(told)

        ended = monitored.handle.end() or by_starter()
        self._forget(monitored)
        return self._deaths.accept(monitored, ended, died, asked=asked, by_starter=by_starter)

    def _take_child_kill(self, monitored: MonitoredKernel) -> None:
        kill = monitored.child_kills.take(time.time())
        if kill is not None:
            self._deaths.accept_child(monitored, kill)

    def stop(self) -> None:
        """Stop watching; deaths that are being gathered are handed on first (a second at most for each)."""
        for thread in self._threads:
            thread.stop()
        self._deaths.stop()
        with self._lock:
            watched, self._watched = self._watched, {}
        for monitored in watched:
            monitored.close()
