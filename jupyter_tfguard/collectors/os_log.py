"""Lines of the OS kernel log about memory kills, GPU faults, failing memory and storage, or crashed processes.

Read from ``/dev/kmsg`` without waiting. Only lines written by the OS kernel count: root can write lines too, also from
a notebook. Not here: logs of systemd-oomd and earlyoom, which are in the journal.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import deque

from ..errors import SourceUnavailable

# Memory cgroup out of memory: Killed process 4711 (python3) total-vm:9GB, anon-rss:..., UID:0 ...
# oom-kill:constraint=CONSTRAINT_MEMCG,...,oom_memcg=/a,task_memcg=/a/b,task=python3,pid=4711,uid=0
# NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=python3, ...
# python3[4711]: segfault at 0 ip 0000... sp 0000... error 4 in lib.so[7f...]
# traps: python3[4711] general protection fault ip:...
_OF_INTEREST = re.compile(
    r"out of memory|oom[-_ ]?kill|oom_reaper|Killed process|memory\.oom\.group|NVRM: Xid"
    r"|\[\d+\]: segfault at |^traps: ",
    re.IGNORECASE,
)
# Memory failure: 0x1840200: Sending SIGBUS to python3:4711 due to hardware memory corruption
# {1}[Hardware Error]: event severity: recoverable      EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0
# blk_update_request: I/O error, dev sda, sector 1024   EXT4-fs (sda1): Remounting filesystem read-only
_FAULT = re.compile(
    r"hardware memory corruption|unmap corrupted page|hardware memory error|Memory error not recovered|EDAC MC\d"
    r"|\[Hardware Error\]: ?(?:event severity|Machine check)|Machine check events logged"
    r"|I/O error|critical (?:medium|target) error|EXT4-fs error|Remounting filesystem read-only|^nfs: server",
    re.IGNORECASE,
)
_RECORD_BYTES = 8192  # the OS kernel returns one record per read, and an error for a smaller buffer
_READ_LIMIT_RECORDS = 100_000
_KEPT_LINES = 200
_KEPT_FAULTS = 50  # kept separately: a failing disk logs thousands of lines


class SystemLogReader:
    """Reads the OS kernel log from now on, or from its start, if permitted.

    Args:
        from_start: Also read the lines that are in the log already.
        path: The log.

    Attributes:
        reason: Why the log cannot be read here; None if it can.
    """

    def __init__(self, *, from_start: bool = False, path: str = "/dev/kmsg") -> None:
        self.reason: str | None = None
        self._kept: deque[tuple[float, str]] = deque(maxlen=_KEPT_LINES)
        self._faults: deque[tuple[float, str]] = deque(maxlen=_KEPT_FAULTS)
        self._descriptor: int | None = None
        if path == "/dev/kmsg" and not _in_first_pid_namespace():
            self._give_up("the kernel log uses other process ids than this container")
            return
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self._descriptor = os.open(path, flags)
            os.lseek(self._descriptor, 0, os.SEEK_SET if from_start else os.SEEK_END)
            self._read_new()
        except (OSError, SourceUnavailable) as bad:
            self._give_up(f"the kernel log {path} cannot be read here ({_words(bad)})")

    def lines(self, since: float) -> list[tuple[float, str]]:
        """Lines of interest since Unix second `since`, oldest first: (Unix seconds, text).

        The log uses a separate clock since boot, without suspended time; after days of uptime it may be off by a
        second.
        """
        try:
            self._read_new()
        except SourceUnavailable as bad:
            self._give_up(f"the kernel log stopped being readable ({_words(bad)})")
        kept = (line for line in (*self._kept, *self._faults) if line[0] >= since)
        return sorted(kept, key=lambda line: line[0])

    def _read_new(self) -> None:
        if self._descriptor is None:
            return
        for _ in range(_READ_LIMIT_RECORDS):
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # records were overwritten before they were read; the next read continues after them
            except OSError as bad:
                raise SourceUnavailable(str(bad.strerror)) from bad
            if not record:
                return
            line = parse_record(record.decode("utf-8", "replace"))
            if line is not None:
                (self._faults if _FAULT.search(line[1]) else self._kept).append(line)

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        self.close()

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


def parse_record(record: str) -> tuple[float, str] | None:
    """Unix seconds and text of one record of /dev/kmsg; None if it is not of interest.

    Sample: ``3,1204,160234512,-;Memory cgroup out of memory: Killed process 4711 (python3) ...``: priority, number,
    microseconds since boot, flags. The bits above the three priority bits are the facility: 0 is the OS kernel, and no
    other writer can set it. Source: Documentation/ABI/testing/dev-kmsg of Linux.
    """
    prefix, semicolon, rest = record.partition(";")
    text = rest.partition("\n")[0]  # further lines contain the fields of the device
    if not semicolon or not (_OF_INTEREST.search(text) or _FAULT.search(text)):
        return None
    try:
        fields = prefix.split(",")
        if int(fields[0]) >> 3:
            return None
        since_boot = int(fields[2]) / 1e6
    except (IndexError, ValueError):
        return None
    return min(time.time() - time.monotonic() + since_boot, time.time()), text


def _in_first_pid_namespace() -> bool:
    # Source: PROC_PID_INIT_INO in include/linux/proc_ns.h
    try:
        return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    except OSError:
        return False


def _words(bad: Exception) -> str:
    return bad.strerror or str(bad) if isinstance(bad, OSError) else str(bad)
