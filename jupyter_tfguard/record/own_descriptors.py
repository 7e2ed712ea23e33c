"""Descriptors that stay open for long. User code may close them, as daemons close all, and then reuse their numbers.

So the identity is checked before each use.
"""

from __future__ import annotations

import array
import os
import stat

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = termios = None  # type: ignore[assignment]

Identity = tuple[int, int]


def identity(descriptor: int) -> Identity | None:
    """Device and inode of the open file; None if the descriptor is closed."""
    try:
        found = os.fstat(descriptor)
    except TimeoutError:
        raise  # an OSError too, but raised by the user's signal handler
    except OSError:
        return None
    return found.st_dev, found.st_ino


def close_ours(descriptor: int, expected: Identity | None) -> None:
    """Close a descriptor if it still refers to the expected file."""
    if identity(descriptor) == expected:
        os.close(descriptor)


def unread_bytes(descriptor: int) -> int:
    """Unread bytes in a pipe, from a descriptor of either end; 0 for anything else."""
    try:
        if fcntl is not None and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            count = array.array("i", [0])
            fcntl.ioctl(descriptor, termios.FIONREAD, count)
            return count[0]
    except OSError:
        pass
    return 0
