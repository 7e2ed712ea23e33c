"""Resident memory of one process, cheap enough to track hundreds of processes."""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any

from ..errors import SourceUnavailable
from ..procfs import KeptFile, colon_lines, read_small, read_text

_STATM_BYTES = 128


class ResidentSize:
    """Resident memory of one process.

    Source: second field of ``/proc/[pid]/statm`` (pages), proc_pid_statm(5), through an open descriptor: 2
    microseconds, and safe against reuse of the process id. This process reads its own without one. psutil without procfs.

    Args:
        pid: The process.
        start_time: Clock ticks since boot, field 22; None = accept any process that has this id now.

    Attributes:
        psutil_process: The process if there is no procfs; else None.

    Raises:
        SourceUnavailable: There is no such process, or no descriptor is free.
    """

    def __init__(self, pid: int, start_time: int | None = None) -> None:
        self._file: KeptFile | None = None
        self.psutil_process: Any = None
        if not has_procfs():
            self.psutil_process = psutil_process(pid)
            return
        self._file = KeptFile(f"/proc/{pid}/statm", _STATM_BYTES, stays_open=pid != os.getpid())
        # Compare while the file is open: then it belongs to this process, not to a later one with the same id.
        if start_time is not None and _start_time(pid) != start_time:
            self.close()
            raise SourceUnavailable(f"process {pid} has ended")

    def read(self) -> int:
        """Current resident memory in bytes.

        Raises:
            SourceUnavailable: The process has ended, or its memory is being released (resident size 0).
        """
        return self.read_with_shared()[0]

    def read_with_shared(self) -> tuple[int, int | None]:
        """Current resident memory, and the part of it that is pages of files and shared memory; None if unknown.

        Raises:
            SourceUnavailable: As :meth:`read`.
        """
        if self.psutil_process is not None:
            import psutil

            try:
                return int(self.psutil_process.memory_info().rss), None
            except psutil.Error as bad:
                raise SourceUnavailable(str(bad)) from bad
        if self._file is None:
            raise SourceUnavailable("closed")
        _, resident, shared, _ = self._file.read_bytes().split(None, 3)
        if int(resident) == 0:
            raise SourceUnavailable("the process has released its memory")
        return int(resident) * mmap.PAGESIZE, int(shared) * mmap.PAGESIZE

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def anonymous_bytes(pid: int) -> int:
    """Resident anonymous memory of a process: what the OOM killer counts, without the pages of files.

    Source: ``RssAnon`` in ``/proc/[pid]/status``, proc_pid_status(5). Sample: ``RssAnon:\t    1234 kB``.

    Raises:
        SourceUnavailable: There is no such process or no procfs, or the process has ended.
    """
    return status_bytes(pid, "RssAnon")["RssAnon"]


def anonymous_peak_bytes(pid: int) -> int:
    """The highest resident anonymous memory so far, nearly: pages of files are subtracted as they are now.

    Source: ``VmHWM``, ``RssAnon``, ``RssFile`` and ``RssShmem`` in ``/proc/[pid]/status``, proc_pid_status(5).

    Raises:
        SourceUnavailable: There is no such process or no procfs, or the process has ended.
    """
    now = status_bytes(pid, "VmHWM", "RssAnon", "RssFile", "RssShmem")
    return max(now["VmHWM"] - now["RssFile"] - now["RssShmem"], now["RssAnon"])


def status_bytes(pid: int, *names: str) -> dict[str, int]:
    """Fields of ``/proc/[pid]/status`` with a size, in bytes, such as ``RssAnon`` and ``VmHWM``.

    Raises:
        SourceUnavailable: There is no such process or no procfs, or the process has ended.
    """
    lines = colon_lines(read_text(f"/proc/{pid}/status"))
    if any(not lines.get(name) for name in names):
        raise SourceUnavailable(f"process {pid} has ended")
    return {name: int(lines[name].split()[0]) * 1024 for name in names}


def _start_time(pid: int) -> int | None:
    try:
        return int(read_small(f"/proc/{pid}/stat").rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None


def has_procfs() -> bool:
    """True if processes are read from /proc of Linux."""
    return sys.platform == "linux" and hasattr(os, "pread") and os.path.exists("/proc/self/statm")


def psutil_process(pid: int) -> Any:
    """The :class:`psutil.Process` with this id.

    Raises:
        SourceUnavailable: There is no such process, or access is denied.
    """
    import psutil

    try:
        return psutil.Process(pid)
    except psutil.Error as bad:
        raise SourceUnavailable(f"process {pid}: {bad}") from bad
