"""Whether a process id that the driver tells is the process that has this id here.

The driver counts processes as the machine does. Inside a container the same number may belong to nobody, or to another
process: so a process must show the driver's library among its mappings before it is believed to hold GPU memory.

Source: /proc/[pid]/maps and stat, proc_pid_maps(5) and proc_pid_stat(5); NVIDIA/nvidia-docker issue 179 for the ids that containers see.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ..collectors.procfs import read_small

_CUDA = b"libcuda.so"
# Xorg, and CUDA's own server, map files of the driver without libcuda: "/dev/nvidia0", "libnvidia-glcore.so.550.54".
_DRIVER = b"nvidia"
_CHUNK_BYTES = 1 << 16
_LIMIT_BYTES = 8 << 20
# A process with hundreds of mappings takes milliseconds to list them.
_AGAIN_SECONDS = 30.0
_SAME_SECONDS = (
    10.0  # an id that was seen in use so short a time ago has not come to another process
)
_KEPT = 1000
_GENERATIONS = 16


class Seen(enum.Enum):
    """What a process id of the driver's list is here."""

    CUDA = "uses CUDA"
    DRIVER = "uses the driver, not CUDA"
    OTHER = "uses no part of the driver"
    UNREADABLE = "is there, and may not be looked at"
    GONE = "is not there"


@dataclass
class _Known:
    started: int | None
    seen: Seen
    read: float
    checked: float


class ProcessCheck:
    """Looks at each process once; again only where it used no CUDA yet. For one thread.

    Args:
        proc: Where processes are listed.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._known: dict[int, _Known] = {}
        # Other systems know one numbering of processes only, and have nothing to look at.
        self._can_look = os.path.isdir(f"{proc}/self")

    def look(self, pid: int, now: float | None = None) -> Seen:
        """What this process is, as far as it may be looked at.

        Args:
            now: Monotonic seconds.
        """
        if not self._can_look:
            return Seen.CUDA
        now = time.monotonic() if now is None else now
        known = self._known.get(pid)
        if known is not None and now - known.checked < _SAME_SECONDS:
            if os.path.exists(f"{self._proc}/{pid}"):
                if known.seen is Seen.CUDA or now - known.read < _AGAIN_SECONDS:
                    return known.seen
            else:
                del self._known[pid]
                return Seen.GONE
        started = self._started(pid)
        if started is None:
            self._known.pop(pid, None)
            return Seen.GONE
        if known is not None and known.started == started:
            known.checked = now
            if known.seen is Seen.CUDA or now - known.read < _AGAIN_SECONDS:
                return known.seen
        seen = self._read(pid)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[pid] = _Known(started, seen, now, now)
        return seen

    def ancestors(self, pid: int) -> Iterator[int]:
        """Its parent, that one's parent and so on, as far as is known."""
        for _ in range(_GENERATIONS):
            fields = self._stat(pid)
            if fields is None or not fields[1].isdigit() or (pid := int(fields[1])) <= 1:
                return
            yield pid

    def _stat(self, pid: int) -> list[str] | None:
        """Fields of its stat file from the state on."""
        try:
            text = read_small(f"{self._proc}/{pid}/stat").decode("utf-8", "replace")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()  # a name may hold anything
        return fields if len(fields) > 19 else None

    def _started(self, pid: int) -> int | None:
        fields = self._stat(pid)
        return int(fields[19]) if fields else None

    def _read(self, pid: int) -> Seen:
        driver, size, rest = False, 0, b""
        try:
            with open(f"{self._proc}/{pid}/maps", "rb", buffering=0) as file:
                while size < _LIMIT_BYTES and (part := file.read(_CHUNK_BYTES)):
                    text = rest + part
                    if _CUDA in text:
                        return Seen.CUDA
                    driver = driver or _DRIVER in text
                    rest, size = text[-16:], size + len(part)
        except (PermissionError, IsADirectoryError):
            return Seen.UNREADABLE
        except OSError:
            return Seen.GONE
        if not size:  # a process of the operating system, or one that is being taken down
            return Seen.UNREADABLE
        return Seen.DRIVER if driver else Seen.OTHER
