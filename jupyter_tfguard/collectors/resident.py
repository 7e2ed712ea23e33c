"""The resident memory of one process, read so cheaply that hundreds of processes can be followed."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from typing import Any

from ..errors import SourceUnavailable
from .procfs import KeptFile, read_small

_STATM_BYTES = 128


class ResidentSize:
    """Resident memory of one process.

    Source: second field of ``/proc/[pid]/statm`` (pages) through a kept descriptor, which never shows a later process
    with the same id: 2 microseconds. Where no descriptor was left, field 24 of ``/proc/[pid]/stat``, opened for each
    reading and compared with the start time in field 22: 10 microseconds. psutil where there is no procfs. Both in proc_pid_stat(5) and proc_pid_statm(5).

    Args:
        pid: The process.
        start_time: Clock ticks since boot, field 22; None = of whichever process has this id now.

    Attributes:
        psutil_process: The process where there is no procfs; else None.

    Raises:
        SourceUnavailable: There is no such process.
    """

    def __init__(self, pid: int, start_time: int | None = None) -> None:
        self.pid = pid
        self._file: KeptFile | None = None
        self.psutil_process: Any = None
        self._start_time = start_time
        if not has_procfs():
            self.psutil_process = psutil_process(pid)
            return
        if not os.path.exists(f"/proc/{pid}"):
            raise SourceUnavailable(f"there is no process {pid}")
        if start_time is None:
            with contextlib.suppress(SourceUnavailable):
                self._start_time = self._stat()[0]
        try:
            file = KeptFile(f"/proc/{self.pid}/statm", _STATM_BYTES)
        except SourceUnavailable:
            return
        # Compared while the file is open: it belongs to this process, not to a later one with the same id.
        with contextlib.suppress(SourceUnavailable):
            if self._stat()[0] == self._start_time:
                self._file = file
                return
        file.close()

    def read(self) -> int:
        """Bytes resident now.

        Raises:
            SourceUnavailable: The process has ended, or its memory is being taken down (resident size 0).
        """
        if self.psutil_process is not None:
            import psutil

            try:
                return int(self.psutil_process.memory_info().rss)
            except psutil.Error as bad:
                raise SourceUnavailable(str(bad)) from bad
        file = self._file
        if file is not None:
            pages = int(file.read_bytes().split(None, 2)[1])
        else:
            started, pages = self._stat()
            if started != self._start_time:
                raise SourceUnavailable(f"process {self.pid} has ended")
        if pages == 0:
            raise SourceUnavailable(f"process {self.pid} has given its memory back")
        return pages * mmap.PAGESIZE

    def _stat(self) -> tuple[int, int]:
        try:
            fields = read_small(f"/proc/{self.pid}/stat").rpartition(b")")[2].split()
            return int(fields[19]), int(fields[21])
        except (OSError, IndexError) as bad:
            raise SourceUnavailable(f"process {self.pid}: {bad}") from bad

    def close(self) -> None:
        """Give the descriptor back; doing it twice is harmless."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def has_procfs() -> bool:
    """True where processes are read from Linux's /proc."""
    return sys.platform == "linux" and hasattr(os, "pread") and os.path.exists("/proc/self/statm")


def psutil_process(pid: int) -> Any:
    """The process as psutil sees it.

    Raises:
        SourceUnavailable: There is no such process, or it may not be looked at.
    """
    import psutil

    try:
        return psutil.Process(pid)
    except psutil.Error as bad:
        raise SourceUnavailable(f"process {pid}: {bad}") from bad
