"""CPU time and page faults of one thread of this process: which thread runs, and which one fills memory.

Source: ``/proc/self/task/[tid]/schedstat`` (nanoseconds on a CPU) and ``stat`` (minor page faults: each is a page that
the thread touched first), see proc(5) and sched-stats.rst of Linux.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from ..procfs import read_small

_MINOR_FAULTS = 7  # field of `stat` behind the name


class ThreadWork(NamedTuple):
    """What a thread has done since it started; the difference of two readings is the work in between.

    Attributes:
        cpu_seconds: CPU time.
        fault_count: Pages that it touched first.
    """

    cpu_seconds: float
    fault_count: int


def thread_work(native_id: int | None) -> ThreadWork | None:
    """The work of a thread of this process; None if it has ended or the value is unknown.

    Args:
        native_id: Its id in the system.
    """
    try:
        path = f"/proc/self/task/{native_id}"
        nanoseconds = int(read_small(f"{path}/schedstat").split()[0])
        faults = _faults(f"{path}/stat")
    except (OSError, ValueError, IndexError):
        return None
    return ThreadWork(nanoseconds / 1e9, faults)


def fault_count() -> int:
    """Pages that all threads of this process have touched first; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return _faults("/proc/self/stat")
    return 0


def _faults(path: str) -> int:
    return int(read_small(path).rpartition(b")")[2].split()[_MINOR_FAULTS])
