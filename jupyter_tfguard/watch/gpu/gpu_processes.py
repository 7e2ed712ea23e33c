"""Checks whether a process id listed by the driver is the process with this id here.

The driver uses the process ids of the machine. Inside a container the same id may be unused or belong to another
process. A process is therefore accepted as a GPU user only if it has mapped a file of the driver.

Source: /proc/[pid]/maps and stat, proc_pid_maps(5) and proc_pid_stat(5); NVIDIA/nvidia-docker issue 179 for the ids that containers see.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Iterator

from ...procfs import read_small

# "libcuda.so.550.54.15"; Xorg and CUDA's server map "/dev/nvidia0" or "libnvidia-glcore.so.550.54".
_DRIVER = (b"libcuda.so", b"nvidia")
_LIMIT_BYTES = 8 << 20
# Listing hundreds of mappings takes milliseconds.
_AGAIN_SECONDS = 30.0
_KEPT = 1000
_GENERATIONS = 16


class Seen(enum.Enum):
    """Result of the check of one process id from the driver's list."""

    GPU_USER = "uses the driver"
    OTHER = "uses no part of the driver"
    UNREADABLE = "is there, and may not be read"
    GONE = "is not there"


class ProcessCheck:
    """Reads the mappings of each process once; again only if it did not use the driver yet. Not thread-safe.

    Args:
        proc: Mount point of procfs.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._known: dict[int, tuple[str, Seen, float]] = {}  # start time, result, when it was read
        # Other systems have no process id namespaces and no procfs.
        self._can_read = os.path.isdir(f"{proc}/self")

    def poll(self, pid: int, now: float | None = None) -> Seen:
        """Check one process id.

        Args:
            now: Monotonic seconds.
        """
        if not self._can_read:
            return Seen.GPU_USER
        now = time.monotonic() if now is None else now
        fields = self._stat(pid)
        if fields is None:
            return Seen.GONE
        started, (before, seen, read) = fields[19], self._known.get(pid, ("", Seen.GONE, 0.0))
        if started == before and (seen is Seen.GPU_USER or now - read < _AGAIN_SECONDS):
            return seen
        if len(self._known) >= _KEPT:
            self._known.clear()
        seen = self._read(pid)
        self._known[pid] = started, seen, now
        return seen

    def ancestors(self, pid: int) -> Iterator[int]:
        """Process ids of its ancestors, nearest first, as far as they can be read."""
        for _ in range(_GENERATIONS):
            fields = self._stat(pid)
            if fields is None or not fields[1].isdigit() or (pid := int(fields[1])) <= 1:
                return
            yield pid

    def _stat(self, pid: int) -> list[str] | None:
        """Fields of its stat file, starting with the state."""
        try:
            text = read_small(f"{self._proc}/{pid}/stat").decode("utf-8", "replace")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()  # the name may contain any character
        return fields if len(fields) > 19 else None

    def _read(self, pid: int) -> Seen:
        try:
            with open(f"{self._proc}/{pid}/maps", "rb") as file:
                text = file.read(_LIMIT_BYTES)
        except (PermissionError, IsADirectoryError):
            return Seen.UNREADABLE
        except OSError:
            return Seen.GONE
        if not text:  # a thread of the OS kernel, or a process that is ending
            return Seen.UNREADABLE
        return Seen.GPU_USER if any(name in text for name in _DRIVER) else Seen.OTHER
