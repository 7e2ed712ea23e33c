"""What the watcher saw of a kernel from outside: the part of a bundle that the kernel itself cannot forge.

All of it is plain data; :func:`dataclasses.asdict` gives the JSON. Unknown is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

AROUND_THE_KERNEL = "around_the_kernel"


@dataclass(frozen=True)
class ExitFacts:
    """How the process ended.

    Attributes:
        signal: ``"SIGKILL"``; None when it was no signal.
        code: Exit code; None when a signal ended it.
        how: ``waitid``, ``pidfd_info`` or ``returncode``: where this was read; `AROUND_THE_KERNEL` where it
            is of a program that had started the kernel and waited for it.
    """

    signal: str | None
    code: int | None
    how: str


@dataclass(frozen=True)
class GroupCounters:
    """Memory counters of one cgroup at one moment.

    Attributes:
        path: As in ``/proc/[pid]/cgroup``.
        version: 1 or 2.
        own: True for the kernel's own group, False for an ancestor.
        limit_bytes: ``memory.max`` or ``memory.limit_in_bytes``; None = no limit.
        used_bytes: ``memory.current`` or ``memory.usage_in_bytes``.
        peak_bytes: ``memory.peak`` or ``memory.max_usage_in_bytes``.
        oom_count: v2, ``oom`` of ``memory.events.local``: this group's own limit was the reason. None on v1.
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
        groups: The kernel's own cgroup first, then its ancestors.
        host_oom_kill_count: ``oom_kill`` of ``/proc/vmstat``: the whole machine's, cgroup kills included.
        host_available_bytes: MemAvailable. host_total_bytes: MemTotal.
        swap_total_bytes, swap_free_bytes: SwapTotal, SwapFree.
        group_pids: Processes of the kernel's own cgroup; None when not read.
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
    """One line of the operating system's own log.

    Attributes:
        time: Unix seconds, as well as the log tells it.
        text: The line without its time stamp.
    """

    time: float
    text: str


@dataclass(frozen=True)
class SystemLog:
    """Lines of the system log that speak of memory kills or of this process.

    Attributes:
        readable: False when the log may not be read here.
        reason: Why not.
        lines: Oldest first.
    """

    readable: bool
    reason: str | None = None
    lines: tuple[SystemLogLine, ...] = ()


@dataclass(frozen=True)
class Fork:
    """A forked child that ran no program of its own, while its kernel stood still.

    Attributes:
        pid: Its process id.
        started: Unix seconds of the fork.
        wait: What its main thread waited for; a name of :class:`~..collectors.standstill.Wait`.
    """

    pid: int
    started: float
    wait: str


@dataclass(frozen=True)
class Hang:
    """A kernel that stood still in the middle of a cell: no step, no processor time, no input or output, no GPU at work.

    Attributes:
        since: Unix seconds when it was last seen doing anything.
        noticed: Unix seconds when it had stood still for as long as the option says.
        wait: What its main thread waited for; a name of :class:`~..collectors.standstill.Wait`.
        in_fit: True when a fit, evaluate or predict was running.
        forks: Forked children.
        stacks: Python stacks of all threads; empty where they could not be had.
        main_thread: How `stacks` names the main thread; None = not known.
    """

    since: float
    noticed: float
    wait: str
    in_fit: bool
    forks: tuple[Fork, ...] = ()
    stacks: tuple[str, ...] = ()
    main_thread: str | None = None


@dataclass(frozen=True)
class ServerFacts:
    """Everything the watcher saw of one death (or of one killed child, with ``kernel_alive``).

    Attributes:
        exit: None when the kernel lives, or when the status could not be read.
        died: Unix seconds when the death was noticed.
        kernel_alive: True for a child that was killed while the kernel goes on.
        shutting_down: The end was asked for.
        peak_bytes: Highest resident memory known (VmHWM with the samples).
        columns: Names of the columns of `rows`; the first is ``time`` (Unix seconds), the others metric names.
        rows: Samples, oldest first; None = unknown.
        before: Counters at the last sample. after: counters read after the death.
        ended_children: Process ids of children that vanished since the last look.
        ended_neighbours: Other processes of the kernel's cgroup that vanished since the last look; None = not known.
        hang: How it had stood still until the end; None for a kernel that had not.
        answered: False for a process from which the host heard nothing at all; None = not known.
        gpus: One dictionary per GPU; what may stand in it is told in ``diagnosis/gpus.py``.
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
    gpus: tuple[dict[str, Any], ...] = ()
    hang: Hang | None = None
    answered: bool | None = None
    unavailable: dict[str, str] = field(default_factory=dict)
