"""Identifies the process of a record. The process id alone is not enough, because ids are reused.

A process is identified by its id, its start time in clock ticks since boot (field 22 of ``/proc/[pid]/stat``,
proc_pid_stat(5)) and the boot id. Without procfs the start time comes from psutil, in hundredths of a second.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import NamedTuple


class ProcessIdentity(NamedTuple):
    """One process of one boot."""

    pid: int
    start_time: int

    @property
    def folder_name(self) -> str:
        """Name of the recording folder of this process."""
        return f"{self.pid}-{self.start_time}"

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The identity of the current process with this id; None if there is none."""
        start = _start_time(pid)
        return None if start is None else cls(pid, start)

    @classmethod
    def from_folder_name(cls, name: str) -> ProcessIdentity | None:
        """The identity in the name of a recording folder; None for any other name."""
        pid, _, start = name.partition("-")
        if not (pid.isascii() and pid.isdigit() and start.isascii() and start.isdigit()):
            return None
        return cls(int(pid), int(start)) if len(name) < 40 else None

    def is_running(self) -> bool:
        """True while this process is running. A zombie is dead."""
        return _start_time(self.pid) == self.start_time and not _is_zombie(self.pid)


def stat_fields(pid: int) -> list[str] | None:
    """Fields of ``/proc/[pid]/stat`` from the state (field 3) on; None if there is no such process.

    The command name may contain spaces and brackets, so the fields are counted from the last bracket.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


def _start_time(pid: int) -> int | None:
    if sys.platform == "linux":
        fields = stat_fields(pid)
        return int(fields[19]) if fields else None
    import psutil

    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return None


def _is_zombie(pid: int) -> bool:
    if sys.platform != "linux":
        return False
    fields = stat_fields(pid)
    return fields is not None and fields[0] in ("Z", "X")


@functools.cache
def boot_id() -> str:
    """Identifier of this boot. Source: /proc/sys/kernel/random/boot_id; elsewhere the boot time."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import psutil

        return f"booted-{int(psutil.boot_time())}-{os.uname().nodename if hasattr(os, 'uname') else ''}"
