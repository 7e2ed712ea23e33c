"""What a process does, and what its main thread waits for: enough to tell a process that stands still from one at work.

Source: ``/proc/[pid]/stat``, ``status``, ``io``, ``syscall`` and the same below ``task/``, see proc(5). Linux only; what
may not be read is unknown.
"""

from __future__ import annotations

import contextlib
import enum
import os
import platform
import re
from collections.abc import Collection
from dataclasses import dataclass

from ..errors import SourceUnavailable
from .procfs import read_small

_SWITCHES = re.compile(rb"^voluntary_ctxt_switches:\s+(\d+)$", re.MULTILINE)
_CAUGHT = re.compile(rb"^SigCgt:\s+([0-9a-f]+)$", re.MULTILINE)
_BYTES = re.compile(rb"^[rw]char: (\d+)$", re.MULTILINE)
_NO_TIMEOUT = "0x0"
_STATE, _MAJOR_FAULTS, _USER_TICKS, _SYSTEM_TICKS, _START = 0, 9, 11, 12, 19


class Wait(enum.Enum):
    """What a thread waits for. ``OTHER`` is a file, a socket, a child: something that the system call does not tell."""

    RUNNING = "running"
    SLEEP = "sleep"
    LOCK = "lock"
    LOCK_WITH_TIMEOUT = "lock, with a timeout"
    DISK = "disk"
    STOPPED = "stopped"
    TRACED = "traced"
    OTHER = "other"
    UNKNOWN = "unknown"


# Numbers of system calls. Source: the kernel's tables for x86-64 and for the generic ABI that arm64 has.
_X86 = {"select": 23, "nanosleep": 35, "futex": 202, "clock_nanosleep": 230, "pselect6": 270}
_GENERIC = {"pselect6": 72, "futex": 98, "nanosleep": 101, "clock_nanosleep": 115}
_CALLS = {
    number: name
    for name, number in {"x86_64": _X86, "aarch64": _GENERIC}.get(platform.machine(), {}).items()
}


@dataclass(frozen=True)
class Doing:
    """What a process and its descendants have done so far; two of them tell what was done in between.

    Of the process only some threads are counted, see :func:`doing`. What a thread did is lost when it ends, so two of them
    can be compared only if `threads` is the same.

    Attributes:
        threads: Ids of the counted threads.
        cpu_seconds: Processor time.
        moved_bytes: Read and written by system calls; 0 where that may not be read.
        major_fault_count: Pages read from a disk.
        main_switch_count: How often its own main thread has waited: it rises when it wakes and waits again.
        switch_counts: The same by thread, without those that wait for a lock just now: a thread that wants the
            interpreter's lock checks two hundred times a second whether it is free.
    """

    threads: frozenset[int]
    cpu_seconds: float
    moved_bytes: int
    major_fault_count: int
    main_switch_count: int
    switch_counts: dict[int, int]


def doing(pid: int, children: Collection[int], without_threads: Collection[int]) -> Doing:
    """What this process and these descendants have done so far.

    Args:
        pid: The process.
        children: Ids of its descendants; one that has ended is left out.
        without_threads: Ids of threads of the process that are not counted.

    Raises:
        SourceUnavailable: The process has ended, or this system does not tell.
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
    return Doing(frozenset(counted), cpu, moved, faults, main, switches)


def cpu_seconds(pid: int) -> float:
    """Processor time of the process alone, all threads.

    Raises:
        SourceUnavailable: The process has ended.
    """
    return _work(f"/proc/{pid}")[0]


def main_wait(pid: int) -> Wait:
    """What the main thread of this process waits for now."""
    return thread_wait(pid, pid)


def thread_wait(pid: int, thread: int) -> Wait:
    """What a thread of this process waits for now."""
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
        return Wait.SLEEP  # of no file: how Python before 3.11 sleeps
    if name == "futex":
        return Wait.LOCK if arguments[3] == _NO_TIMEOUT else Wait.LOCK_WITH_TIMEOUT
    return Wait.OTHER


def is_fork(pid: int, parent: int) -> bool:
    """True for a process that runs on with its parent's program: forked, and no other program started in it."""
    try:
        own, others = read_small(f"/proc/{pid}/cmdline"), read_small(f"/proc/{parent}/cmdline")
        return bool(own) and own == others
    except OSError:
        return False


def runs_program(pid: int) -> bool:
    """False for the process that clears away what Python's multiprocessing leaves, which does nothing until then."""
    try:
        return b"resource_tracker" not in read_small(f"/proc/{pid}/cmdline")
    except OSError:
        return False


def started(pid: int, thread: int | None = None) -> float:
    """When a process, or one of its threads, was started, in seconds since the boot.

    Raises:
        SourceUnavailable: It has ended.
    """
    path = f"/proc/{pid}" if thread is None else f"/proc/{pid}/task/{thread}"
    return int(_stat(path)[_START]) / _ticks_per_second()


def catches(pid: int, signal_number: int) -> bool:
    """True when the process has a handler for this signal."""
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
    """Processor seconds, pages read from a disk."""
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
