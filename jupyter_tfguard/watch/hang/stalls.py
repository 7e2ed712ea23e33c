"""Detects a fit that makes no step although its kernel computes: a data pipeline that yields nothing, a generator that spins.

A first step traces and compiles the model, which takes minutes and looks much the same. It counts only if the data at
work were seen: a generator in the stacks, or threads that hand elements on. Later steps are compared with those before.
"""

from __future__ import annotations

import os
import time

from ...collectors.process import descendants
from ...collectors.process_activity import cpu_seconds, thread_works
from ...errors import SourceUnavailable
from ...record.stacks import Frame, feeding
from ..live.live import FitPlace
from ..monitored import MonitoredKernel

_FIRST_STEP_FACTOR = 2.0  # a first batch may fill a shuffle buffer or unpack an archive
_LONGEST_STEP_FACTOR = 10.0
_COMPILE_FACTOR = 2.0  # validation and a smaller last batch are compiled too
_BUSY_CPU_FRACTION = 0.1  # of a core, on a machine that may be overloaded
# Measured on TensorFlow 2.21: an iterator that drops all elements waits 1,400 to 60,000 times in a second of CPU time,
# and the main thread only waits for it. Compilation by XLA waits 1 to 35 times, tracing runs in the main thread.
_PIPELINE_SWITCHES = 500.0
_MAIN_CPU_FRACTION = 0.05
_CALLBACKS = ("callback_list.py", "callbacks.py")


class Stall:
    """Follows the steps of one kernel.

    Args:
        monitored: The kernel.
        hang_seconds: The option.

    Attributes:
        since: Unix seconds when a step was last seen to begin or end.
    """

    def __init__(self, monitored: MonitoredKernel, hang_seconds: float) -> None:
        self._monitored = monitored
        self._hang_seconds = hang_seconds
        self._place: FitPlace | None = None
        self._first_seconds = self._longest_seconds = 0.0
        self._works: tuple[float, dict[int, tuple[float, int]]] | None = None
        self._moved()

    def _moved(self) -> None:
        self._moved_at, self.since = time.monotonic(), time.time()
        self._pipeline_since: float | None = None
        self._cpu_then: float | None = None

    def poll(self, *, gpu_works: bool) -> bool:
        """Poll once; True if a step is overdue and the kernel computes. :meth:`is_stall` then judges the stacks."""
        live, now = self._monitored.live, time.monotonic()
        place = live.place
        if place != self._place or place is None or not place.in_step or gpu_works:
            self._note_step(place, now)
            return False
        try:
            if not self._monitored.kernel.runs_cell() or not self._computes(now):
                return False
        except SourceUnavailable:
            return False
        return now - self._moved_at >= self._allowed(place)

    def _note_step(self, place: FitPlace | None, now: float) -> None:
        before, self._place = self._place, place
        seconds = now - self._moved_at
        if place is None or before is None or before.fit_id != place.fit_id:
            self._first_seconds = self._longest_seconds = 0.0
        elif before.is_first:
            self._first_seconds += seconds
        else:
            self._longest_seconds = max(self._longest_seconds, seconds)
        self._moved()

    def _allowed(self, place: FitPlace) -> float:
        if place.is_first:
            return self._hang_seconds * _FIRST_STEP_FACTOR
        rate = (self._monitored.live.training or {}).get("steps_per_second")
        longest = max(self._longest_seconds, 1.0 / rate if rate and rate > 0 else 0.0)
        own = max(_LONGEST_STEP_FACTOR * longest, _COMPILE_FACTOR * self._first_seconds)
        return max(self._hang_seconds, own)

    def _computes(self, now: float) -> bool:
        """True if the kernel and its children have computed since the last step."""
        pid = self._monitored.identity.pid
        self._note_pipeline(pid, now)
        cpu = cpu_seconds(pid) + sum(map(_cpu_of_child, descendants(pid)))
        if self._cpu_then is None:
            self._cpu_then = cpu
            return False
        return cpu - self._cpu_then >= _BUSY_CPU_FRACTION * (now - self._moved_at)

    def _note_pipeline(self, pid: int, now: float) -> None:
        """Note since when every poll has seen that threads hand elements on while the main thread waits for them."""
        works, before = thread_works(pid), self._works
        self._works = (now, works)
        if before is None or self._cpu_then is None:
            return
        seconds = now - before[0]
        cpu = switches = main = 0.0
        for thread, (used, waited) in works.items():
            used_then, waited_then = before[1].get(thread, (used, waited))
            cpu, switches = cpu + used - used_then, switches + waited - waited_then
            main = used - used_then if thread == pid else main
        works_on_data = main < _MAIN_CPU_FRACTION * seconds and switches > _PIPELINE_SWITCHES * cpu
        if not works_on_data or cpu < _BUSY_CPU_FRACTION * seconds:
            self._pipeline_since = None
        elif self._pipeline_since is None:
            self._pipeline_since = before[0]

    def is_stall(self, stacks: dict[str, list[Frame]], main: str | None) -> bool:
        """Judge an overdue step by the stacks of all threads, innermost first, and the name of the main thread."""
        if any(os.path.basename(frame.file) in _CALLBACKS for frame in stacks.get(main or "", ())):
            return False  # a callback that takes long is no step
        if self._place is None or not self._place.is_first:
            return True
        if feeding(stacks) is not None:
            return True
        allowed = self._hang_seconds * _FIRST_STEP_FACTOR
        since = self._pipeline_since
        return since is not None and time.monotonic() - since >= allowed - self._hang_seconds


def _cpu_of_child(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except SourceUnavailable:
        return 0.0
