"""Activity of a process, and what its main thread waits for: used to detect a hang.

Source: ``/proc/[pid]/stat``, ``status``, ``io``, ``syscall`` and the same below ``task/``, see proc(5). Linux only;
unreadable values are unknown.
"""

from __future__ import annotations

import contextlib
import enum
import os
import platform
import re
from collections.abc import Collection
from typing import NamedTuple

from ..errors import SourceUnavailable
from ..procfs import read_small

_SWITCHES = re.compile(rb"^voluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE)
_CAUGHT = re.compile(rb"^SigCgt:\s+([0-9a-f]+)$", re.MULTILINE)
_BYTES = re.compile(rb"^[rw]char: (\d+)$", re.MULTILINE)
_NO_TIMEOUT = "0x0"
_STATE, _MAJOR_FAULTS, _USER_TICKS, _SYSTEM_TICKS, _START = 0, 9, 11, 12, 19


class Wait(enum.Enum):
    """What a thread waits for. ``OTHER`` is a file, a socket or a child: the system call does not show which."""

    RUNNING = "running"
    SLEEP = "sleep"
    LOCK = "lock"
    LOCK_WITH_TIMEOUT = "lock, with a timeout"
    DISK = "disk"
    STOPPED = "stopped"
    TRACED = "traced"
    OTHER = "other"
    UNKNOWN = "unknown"


# Numbers of system calls. Source: tables of Linux for x86-64 and for the generic ABI, which arm64 uses.
_X86 = {"select": 23, "nanosleep": 35, "futex": 202, "clock_nanosleep": 230, "pselect6": 270}
_GENERIC = {"pselect6": 72, "futex": 98, "nanosleep": 101, "clock_nanosleep": 115}
_CALLS = {
    number: name
    for name, number in {"x86_64": _X86, "aarch64": _GENERIC}.get(platform.machine(), {}).items()
}


class ProcessActivity(NamedTuple):
    """Total activity of a process and its descendants; the difference of two readings is the activity in between.

    Only some threads of the process are counted, see :func:`doing`. The counts of a thread are lost when it ends, so
    two readings can be compared only if `threads` is the same.

    Attributes:
        threads: Ids of the counted threads.
        cpu_seconds: CPU time.
        moved_bytes: Read and written by system calls; 0 if unreadable.
        major_fault_count: Pages read from a disk.
        main_switch_count: How often the main thread of the process has waited: rises when it wakes and waits again.
        switch_counts: The same per thread, without threads that wait for a lock now: a thread that waits for the GIL
            checks it two hundred times a second.
    """

    threads: frozenset[int]
    cpu_seconds: float
    moved_bytes: int
    major_fault_count: int
    main_switch_count: int
    switch_counts: dict[int, int]


def process_activity(
    pid: int, children: Collection[int], without_threads: Collection[int]
) -> ProcessActivity:
    """Total activity of this process and these descendants so far.

    Args:
        pid: The process.
        children: Ids of its descendants; ended ones are skipped.
        without_threads: Ids of threads of the process that are not counted.

    Raises:
        SourceUnavailable: The process has ended, or this system has no such data.
    """
    main = _switches(pid, pid)
    cpu, moved, faults = 0.0, 0, 0
    counted = set()
    for thread in _threads(pid) - {*without_threads}:
        with contextlib.suppress(SourceUnavailable):  # it has ended
            seconds, more_faults = _work(f"/proc/{pid}/task/{thread}")
            cpu, faults = cpu + seconds, faults + more_faults
            moved += _moved(f"/proc/{pid}/task/{thread}")
            counted.add(thread)
    switches = _thread_switches(pid, counted)
    for child in children:
        with contextlib.suppress(SourceUnavailable):
            seconds, more_faults = _work(f"/proc/{child}")
            cpu, faults = cpu + seconds, faults + more_faults
            moved += _moved(f"/proc/{child}")
            switches |= _thread_switches(child, _threads(child))
    return ProcessActivity(frozenset(counted), cpu, moved, faults, main, switches)


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of the process, without children.

    Raises:
        SourceUnavailable: The process has ended.
    """
    return _work(f"/proc/{pid}")[0]


def thread_works(pid: int) -> dict[int, tuple[float, int]]:
    """CPU seconds so far, and how often it has waited, of each thread of a process; empty if unreadable."""
    found = {}
    for thread in _threads(pid):
        with contextlib.suppress(SourceUnavailable):  # it has ended
            found[thread] = (_work(f"/proc/{pid}/task/{thread}")[0], _switches(pid, thread))
    return found


def main_wait(pid: int) -> Wait:
    """What the main thread of this process currently waits for."""
    return thread_wait(pid, pid)


def thread_wait(pid: int, thread: int) -> Wait:
    """What a thread of this process currently waits for."""
    try:
        state = _stat(f"/proc/{pid}/task/{thread}")[_STATE]
    except SourceUnavailable:
        return Wait.UNKNOWN
    by_state = {b"R": Wait.RUNNING, b"D": Wait.DISK, b"T": Wait.STOPPED, b"t": Wait.TRACED}
    if state in by_state:
        return by_state[state]
    try:
        # 202 0x7f1c 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd 0x7f1d
        call, *arguments = read_small(f"/proc/{pid}/task/{thread}/syscall").decode().split()
        return _of_call(_CALLS.get(int(call)), arguments)
    except (OSError, ValueError, IndexError):
        return Wait.UNKNOWN


def _of_call(name: str | None, arguments: list[str]) -> Wait:
    if name in ("nanosleep", "clock_nanosleep"):
        return Wait.SLEEP
    if name in ("select", "pselect6") and arguments[0] == "0x0":
        return Wait.SLEEP  # select without files: time.sleep() before Python 3.11
    if name == "futex":
        return Wait.LOCK if arguments[3] == _NO_TIMEOUT else Wait.LOCK_WITH_TIMEOUT
    return Wait.OTHER


def is_fork(pid: int, parent: int) -> bool:
    """True for a process that was forked without exec: it still runs its parent's program."""
    try:
        own, others = read_small(f"/proc/{pid}/cmdline"), read_small(f"/proc/{parent}/cmdline")
        return bool(own) and own == others
    except OSError:
        return False


def runs_program(pid: int) -> bool:
    """False for the resource tracker of Python's multiprocessing, which is idle until the end."""
    try:
        return b"resource_tracker" not in read_small(f"/proc/{pid}/cmdline")
    except OSError:
        return False


def started(pid: int, thread: int | None = None) -> float:
    """Start time of a process, or of one of its threads, in seconds since boot.

    Raises:
        SourceUnavailable: It has ended.
    """
    path = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    return int(_stat(path)[_START]) / _ticks_per_second()


def catches(pid: int, signal_number: int) -> bool:
    """True if the process has a handler for this signal."""
    try:
        found = _CAUGHT.search(read_small(f"/proc/{pid}/status"))
    except OSError:
        return False
    return bool(found and int(found[1], 16) >> (signal_number - 1) & 1)


def _stat(path: str) -> list[bytes]:
    try:
        return read_small(f"{path}/stat").rpartition(b")")[2].split()
    except OSError as bad:
        raise SourceUnavailable(f"{path}/stat: {bad.strerror}") from bad


def _work(path: str) -> tuple[float, int]:
    """CPU seconds, pages read from a disk."""
    fields = _stat(path)
    ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
    return ticks / _ticks_per_second(), int(fields[_MAJOR_FAULTS])


def _moved(path: str) -> int:
    try:
        return sum(map(int, _BYTES.findall(read_small(f"{path}/io"))))
    except OSError:
        return 0


def _switches(pid: int, thread: int) -> int:
    try:
        found = _SWITCHES.search(read_small(f"/proc/{pid}/task/{thread}/status"))
    except OSError as bad:
        raise SourceUnavailable(f"thread {thread} of process {pid}: {bad.strerror}") from bad
    return int(found[1]) if found else 0


def _threads(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return set(map(int, os.listdir(f"/proc/{pid}/task")))
    return set()


def _thread_switches(pid: int, threads: Collection[int]) -> dict[int, int]:
    found = {}
    for thread in threads:
        with contextlib.suppress(SourceUnavailable):  # it has ended
            if thread_wait(pid, thread) not in (Wait.LOCK, Wait.LOCK_WITH_TIMEOUT):
                found[thread] = _switches(pid, thread)
    return found


def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")
