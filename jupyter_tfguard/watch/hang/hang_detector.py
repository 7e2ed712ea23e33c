"""Detects whether a kernel hangs in the middle of a cell, or waits for something that will happen.

Progress is a training step, CPU time, bytes read or written, or GPU work. A kernel in a sleep, in a debugger or waiting
for another program does not hang; outside of a fit, neither does a kernel in any wait that ends by itself. A wait for
the user (``input()``) shows only in the stacks.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from ...collectors.process import descendants
from ...collectors.process_activity import (
    ProcessActivity,
    Wait,
    cpu_seconds,
    is_fork,
    main_wait,
    process_activity,
    runs_program,
    started,
)
from ...errors import SourceUnavailable
from ...record.events import LOOP
from ...record.facts import Fork
from ...record.stacks import Frame, service_threads
from ..monitored import MonitoredKernel

# Fractions of a core. Without a guard it is unknown which threads belong to Jupyter and tfguard.
_STILL_CPU_FRACTION, _STILL_CPU_FRACTION_UNKNOWN = 0.01, 0.05
_STILL_CPU_SECONDS = (
    0.05  # counted in ticks of 0.01 s, each charged to the thread that runs at its end
)
_BUSY_CPU_FRACTION = 0.2
_STILL_BYTES = 4096
_STILL_MAJOR_FAULTS = 16
_STILL_SWITCHES_HERTZ, _STILL_SWITCHES = 3.0, 10
# Outside of a fit only these waits count as a hang without stacks.
_HARD_WAITS = (Wait.LOCK, Wait.STOPPED, Wait.DISK)


@dataclass(frozen=True)
class Waiting:
    """What a hanging kernel waits for. `in_fit`: a fit, evaluate, predict or training loop is running."""

    wait: Wait
    in_fit: bool
    forks: tuple[Fork, ...]


class HangDetector:
    """Follows one kernel.

    Args:
        monitored: The kernel.

    Attributes:
        since: Unix seconds of the last observed progress.
    """

    def __init__(self, monitored: MonitoredKernel) -> None:
        self._monitored = monitored
        self._position: object = None
        self._cpu: tuple[float, float] | None = None
        self._activity: tuple[float, tuple[int, ...], ProcessActivity] | None = None
        self._moved_at = time.monotonic()
        self.since = time.time()

    @property
    def _pid(self) -> int:
        return self._monitored.identity.pid

    def moved(self) -> None:
        """Note progress."""
        self._moved_at, self.since = time.monotonic(), time.time()

    @property
    def still_seconds(self) -> float:
        """Seconds since the last observed progress."""
        return time.monotonic() - self._moved_at

    def poll(self, *, gpu_works: bool) -> Waiting | None:
        """Poll once; what the kernel waits for, or None if it makes or may make progress, or has ended."""
        found = None
        try:
            if self._monitored.kernel.runs_cell() and not gpu_works and not self._progressed():
                found = self._stillness()
        except SourceUnavailable:
            found = None
        if found is None:
            self.moved()
        return found

    def _progressed(self) -> bool:
        live, now = self._monitored.live, time.monotonic()
        position = (live.training, live.marks[-1:])
        cpu, before = cpu_seconds(self._pid), self._cpu
        self._cpu = (now, cpu)
        if position != self._position or before is None:
            self._position = position
            return True
        return cpu - before[1] > _BUSY_CPU_FRACTION * (now - before[0])

    def _stillness(self) -> Waiting | None:
        now, children = (
            time.monotonic(),
            descendants(self._pid),
        )  # the monitored kernel's list may be seconds old
        quiet = service_threads(self._monitored.live.header)
        done, before = process_activity(self._pid, children, quiet), self._activity
        self._activity = (now, children, done)
        training = self._monitored.live.training
        in_training = bool(training and training["active"])
        # Only a fit is known to be over: a cell may do something else after its own loop.
        in_fit = in_training and training is not None and training["kind"] != LOOP
        if before is None or before[1] != children:
            return None
        if _worked(before[2], done, now - before[0], in_fit=in_fit, guarded=bool(quiet)):
            return None
        wait = main_wait(self._pid)
        if _ends_by_itself(wait, in_fit=in_fit, guarded=bool(quiet)):
            return None
        waits = {child: main_wait(child) for child in children}
        if Wait.SLEEP in waits.values():
            return None
        forks = [child for child in children if is_fork(child, self._pid)]
        if wait is Wait.OTHER and not in_fit and any(map(runs_program, {*children} - {*forks})):
            return None  # another program does the work, possibly on another machine
        boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return Waiting(
            wait, in_training, tuple(Fork(c, boot + started(c), waits[c].value) for c in forks)
        )


def _worked(
    before: ProcessActivity, now: ProcessActivity, seconds: float, *, in_fit: bool, guarded: bool
) -> bool:
    fraction = _STILL_CPU_FRACTION if guarded else _STILL_CPU_FRACTION_UNKNOWN
    if now.threads != before.threads:  # a thread was started or has ended
        return True
    cpu = now.cpu_seconds - before.cpu_seconds
    if cpu > max(fraction * seconds, _STILL_CPU_SECONDS):
        return True
    if now.moved_bytes - before.moved_bytes > _STILL_BYTES:
        return True
    if now.major_fault_count - before.major_fault_count > _STILL_MAJOR_FAULTS:
        return True
    if not in_fit and now.main_switch_count != before.main_switch_count:
        return True
    # Network bytes are not counted, but a thread that receives them waits repeatedly.
    waits = sum(
        count - before.switch_counts[thread]
        for thread, count in now.switch_counts.items()
        if thread in before.switch_counts
    )
    return waits > max(_STILL_SWITCHES_HERTZ * seconds, _STILL_SWITCHES)


def _ends_by_itself(wait: Wait, *, in_fit: bool, guarded: bool) -> bool:
    if wait in (Wait.SLEEP, Wait.TRACED):
        return True
    if in_fit:
        return False
    return wait not in _HARD_WAITS and (wait is not Wait.OTHER or not guarded)


def waits_for_user(frames: list[Frame]) -> bool:
    """True if a main thread with this stack, innermost first, waits for its user: ``input()``, a debugger, an await.

    ``input()`` and ``getpass()`` end in ipykernel's ``_input_request``; a cell that awaits leaves the thread to the event
    loop; debugpy's own code holds a thread at a breakpoint.
    """
    for depth, frame in enumerate(frames[:12]):
        folder, name = os.path.split(frame.file)
        if name == "kernelbase.py" and frame.name == "_input_request":
            return True
        if depth < 2 and name in ("selectors.py", "base_events.py") and frame.name in _LOOP_NAMES:
            return True
        if "pydevd" in name or "debugpy" in folder:
            return True
    return False


_LOOP_NAMES = ("select", "_run_once")
