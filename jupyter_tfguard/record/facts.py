"""Facts that the watcher observed about a kernel from outside: the part of a bundle that the kernel cannot forge.

All classes are plain data; :func:`dataclasses.asdict` gives the JSON. Unknown is None.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

AROUND_THE_KERNEL = "around_the_kernel"


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; ``SIGRTMIN+3`` and similar for unnamed signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        first = getattr(signal, "SIGRTMIN", None)
        last = getattr(signal, "SIGRTMAX", None)
        if first is not None and last is not None and first <= number <= last:
            return f"SIGRTMIN+{number - first}"
        return f"signal {number}"


@dataclass(frozen=True)
class ExitFacts:
    """How the process ended.

    Attributes:
        signal: Such as ``"SIGKILL"``; None if no signal ended it.
        code: Exit code; None if a signal ended it.
        how: The source: ``waitid``, ``pidfd_info``, ``returncode`` or ``helper``; `AROUND_THE_KERNEL` if the status is that of a
            program that started the kernel and waited for it.
    """

    signal: str | None
    code: int | None
    how: str

    @classmethod
    def of_status(cls, status: int, how: str) -> ExitFacts:
        """From a status as of wait(2)."""
        number = status & 0x7F
        return cls(
            signal_name(number) if number else None, None if number else status >> 8 & 0xFF, how
        )


@dataclass(frozen=True)
class GroupCounters:
    """Memory counters of one cgroup at one moment.

    Attributes:
        path: Path as in ``/proc/[pid]/cgroup``.
        version: 1 or 2.
        own: True for the group that contains the kernel, False for an ancestor.
        limit_bytes: ``memory.max`` or ``memory.limit_in_bytes``; None = no limit.
        used_bytes: ``memory.current`` or ``memory.usage_in_bytes``.
        peak_bytes: ``memory.peak`` or ``memory.max_usage_in_bytes``.
        oom_count: v2 ``oom`` of ``memory.events.local``: the limit of this group was the reason. None on v1.
        oom_kill_count: v2 ``oom_kill`` of ``memory.events``, v1 ``oom_kill`` of ``memory.oom_control``.
        failcnt_count: v1 ``memory.failcnt``, v2 ``max`` of ``memory.events.local``: the limit was hit.
    """

    path: str
    version: int
    own: bool
    limit_bytes: int | None = None
    used_bytes: int | None = None
    peak_bytes: int | None = None
    oom_count: int | None = None
    oom_kill_count: int | None = None
    failcnt_count: int | None = None


@dataclass(frozen=True)
class Counters:
    """All counters that prove or rule out an out-of-memory kill, at one moment.

    Attributes:
        time: Unix seconds when they were read.
        groups: The cgroup of the kernel first, then its ancestors.
        host_oom_kill_count: ``oom_kill`` of ``/proc/vmstat``: for the whole machine, cgroup kills included.
        host_available_bytes: MemAvailable. host_total_bytes: MemTotal.
        swap_total_bytes, swap_free_bytes: SwapTotal, SwapFree.
        group_pids: Processes in the cgroup of the kernel; None if not read.
    """

    time: float
    groups: tuple[GroupCounters, ...] = ()
    host_oom_kill_count: int | None = None
    host_available_bytes: int | None = None
    host_total_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    group_pids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class SystemLogLine:
    """One line of the operating system's log.

    Attributes:
        time: Unix seconds, as precise as the log has them.
        text: The line without its time stamp.
    """

    time: float
    text: str


@dataclass(frozen=True)
class SystemLog:
    """Lines of the system log about out-of-memory kills or this process.

    Attributes:
        readable: False if the log may not be read here.
        reason: Why not.
        lines: Oldest first.
    """

    readable: bool
    reason: str | None = None
    lines: tuple[SystemLogLine, ...] = ()


@dataclass(frozen=True)
class Fork:
    """A forked child that had not called exec while its kernel hung.

    Attributes:
        pid: Its process id.
        started: Unix seconds of the fork.
        wait: What its main thread was waiting for; a name of :class:`~..collectors.standstill.Wait`.
    """

    pid: int
    started: float
    wait: str


@dataclass(frozen=True)
class Hang:
    """A kernel that hung during a cell: no step, no processor time, no input or output, no GPU activity.

    Attributes:
        since: Unix seconds of its last observed activity.
        noticed: Unix seconds when it had been hanging for the time set by the option.
        wait: What its main thread was waiting for; a name of :class:`~..collectors.standstill.Wait`.
        in_fit: True if a fit, evaluate, predict or training loop was running.
        forks: Forked children.
        stacks: Python stacks of all threads; empty if they could not be read.
        main_thread: Name of the main thread in `stacks`; None = unknown.
    """

    since: float
    noticed: float
    wait: str
    in_fit: bool
    forks: tuple[Fork, ...] = ()
    stacks: tuple[str, ...] = ()
    main_thread: str | None = None


@dataclass(frozen=True)
class Cull:
    """The check of the server's culler that shut the kernel down.

    Attributes:
        time: Unix seconds of the check.
        idle_seconds: Without activity, as the server counts it: messages of the kernel.
        timeout_seconds: The option ``cull_idle_timeout``.
        was_busy: A cell was running; the option ``cull_busy`` allows that.
    """

    time: float
    idle_seconds: float
    timeout_seconds: float
    was_busy: bool


@dataclass(frozen=True)
class SharedMemory:
    """``/dev/shm`` right after a crash, before Python's resource tracker can have emptied it without a message.

    Attributes:
        size_bytes: Its size.
        free_bytes: What was free.
    """

    size_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class ServerFacts:
    """Everything the watcher observed about one crash (or about one killed child, with ``kernel_alive``).

    Attributes:
        exit: None if the kernel is running, or if the status could not be read.
        died: Unix seconds when the crash was noticed.
        kernel_alive: True for a child that was killed while the kernel keeps running.
        shutting_down: The shutdown was requested.
        peak_bytes: Highest resident memory known (VmHWM with the samples).
        columns: Names of the columns of `rows`; the first is ``time`` (Unix seconds), the others metric names.
        rows: Samples, oldest first; None = unknown.
        before: Counters at the last sample. after: Counters read after the crash.
        ended_children: Process ids of children that ended since the last poll.
        ended_neighbours: Other processes in the kernel's cgroup that ended since the last poll; None = unknown.
        hang: The hang that lasted until the end; None if the kernel was not hanging.
        cull: The check of the server's culler that shut the kernel down; None if something else ended it.
        answered: False if the host never received anything from the process; None = unknown.
        other_kernel_bytes: Resident memory of each other tracked kernel at the end; None = unknown.
        shared_memory: ``/dev/shm`` after a bus error; None = not read.
        gpus: One dictionary per GPU; ``diagnosis/gpus.py`` describes its keys.
        unavailable: What could not be read, and why: ``{"NVML": "no driver library"}``.
    """

    exit: ExitFacts | None
    died: float
    kernel_alive: bool = False
    shutting_down: bool = False
    peak_bytes: int | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[float | None, ...], ...] = ()
    before: Counters | None = None
    after: Counters | None = None
    ended_children: tuple[int, ...] = ()
    ended_neighbours: tuple[int, ...] | None = None
    other_kernel_bytes: tuple[int, ...] | None = None
    shared_memory: SharedMemory | None = None
    gpus: tuple[dict[str, Any], ...] = ()
    hang: Hang | None = None
    cull: Cull | None = None
    answered: bool | None = None
    unavailable: dict[str, str] = field(default_factory=dict)
