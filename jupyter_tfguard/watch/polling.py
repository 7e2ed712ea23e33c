"""The polling loops of a watcher, each in a separate thread: their base class, and the two loops that read memory.

The sampler reads the memory of busy kernels ten times a second and of idle kernels once a second. The slow poll reads what
takes longer (counters of the memory groups, children, peak, swap), so that samples never wait for it: while the machine
runs out of memory, reading these files can take a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..collectors.host import HostCollector
from ..errors import SourceUnavailable
from ..shield import shielded
from .monitored import MonitoredKernel

_NOTICE_BUSY_SECONDS = 0.25
_SLOW_SECONDS = 1.0
_IDLE_ROUNDS = 20
_STOP_SECONDS = 2.0


class PollThread:
    """A thread that runs :meth:`_round` until :meth:`stop`; it sleeps while no kernel is tracked.

    Args:
        name: Name of the thread.
        monitored_kernels: Returns the kernels that are tracked now.
    """

    def __init__(
        self, name: str, monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]]
    ) -> None:
        self._monitored_kernels = monitored_kernels
        self._known: set[MonitoredKernel] = set()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Start the next round now, because of a new kernel."""
        self._wake.set()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping:
            self._wake.wait(max(0.0, due - time.monotonic()) if self._monitored_kernels() else None)
            self._wake.clear()
            began, pause = time.monotonic(), _SLOW_SECONDS
            with shielded("tracking kernels"):
                monitored_kernels = self._monitored_kernels()
                pause = self._round(monitored_kernels, began)
                self._known = set(monitored_kernels)
            due = min(max(due + pause, began), began + pause)  # at a fixed rate, unless woken
        self._end()

    def _round(self, monitored_kernels: tuple[MonitoredKernel, ...], now: float) -> float:
        """Poll the kernels; returns the seconds until the next round."""
        raise NotImplementedError

    def _end(self) -> None:
        """Release resources; idempotent."""

    def stop(self) -> None:
        """Stop the thread; a round that hangs is abandoned."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        else:
            self._end()


class SamplingThread(PollThread):
    """Takes the samples.

    Args:
        monitored_kernels: Returns the kernels that are tracked now.
        on_gone: Called when a process has ended unnoticed by the host.
        busy_seconds, idle_seconds: Interval between samples of a busy and of an idle kernel.
    """

    def __init__(
        self,
        monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]],
        on_gone: Callable[[MonitoredKernel], None],
        busy_seconds: float,
        idle_seconds: float,
    ) -> None:
        super().__init__("tfguard-sampler", monitored_kernels)
        self._host = HostCollector()
        self._on_gone = on_gone
        self._busy_seconds = busy_seconds
        self._idle_seconds = idle_seconds
        self._idle_due = 0.0
        self._tick = 0

    def _round(self, monitored_kernels: tuple[MonitoredKernel, ...], now: float) -> float:
        for monitored in monitored_kernels:
            monitored.is_busy = monitored.kernel.is_busy() or monitored.live.runs_cell
        is_any_busy = any(monitored.is_busy for monitored in monitored_kernels)
        pause = self._busy_seconds if is_any_busy else min(self._idle_seconds, _NOTICE_BUSY_SECONDS)
        takes_idle = now >= self._idle_due - pause / 2
        if takes_idle:
            self._idle_due = now + self._idle_seconds
        due = [
            one for one in monitored_kernels if takes_idle or one.is_busy or one not in self._known
        ]
        if due:
            self._sample(due)
        return pause

    def _sample(self, due: list[MonitoredKernel]) -> None:
        self._tick += 1
        machine = _read(self._host)
        for monitored in due:
            if not monitored.sample(self._tick, machine) and not monitored.handle.is_running():
                self._on_gone(monitored)

    def _end(self) -> None:
        self._host.close()


class SlowPoll(PollThread):
    """Reads what takes longer than a sample: once a second; for idle kernels without children every 20 seconds.

    Args:
        monitored_kernels: Returns the kernels that are tracked now.
        after_poll: Called with each kernel after the counters of its group were read.
    """

    def __init__(
        self,
        monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]],
        after_poll: Callable[[MonitoredKernel], None],
    ) -> None:
        super().__init__("tfguard-slow-poll", monitored_kernels)
        self._host = HostCollector()
        self._after_poll = after_poll
        self._number = 0

    def _round(self, monitored_kernels: tuple[MonitoredKernel, ...], now: float) -> float:
        takes_idle = self._number % _IDLE_ROUNDS == 0
        self._number += 1
        for monitored in monitored_kernels:
            if (
                takes_idle
                or monitored.is_busy
                or monitored.children
                or monitored not in self._known
            ):
                monitored.poll()
        machine = _read(self._host)
        for group in {monitored.group for monitored in monitored_kernels}:
            group.poll(machine)
        for monitored in monitored_kernels:
            monitored.read_kills()
            self._after_poll(monitored)
        return _SLOW_SECONDS

    def _end(self) -> None:
        self._host.close()


def _read(host: HostCollector) -> dict[str, float]:
    """Metrics of the machine; empty if they cannot be read."""
    try:
        return host.collect()
    except SourceUnavailable:
        return {}
