"""Size and use of ``/dev/shm``, through which worker processes pass data. A write to it when it is full ends in SIGBUS."""

from __future__ import annotations

import os

_PATH = "/dev/shm"


def shared_memory(path: str = _PATH) -> tuple[int, int] | None:
    """Size of the file system and what is free, bytes; None if this system has none, or it has no limit."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    if found.f_blocks <= 0:
        return None
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
