"""One process at a time: a lock that the system itself gives back when its holder dies.

It guards counts that several processes add to (a server, ``jupyter tfguard why``, the next kernel). It is a promise among
writers: readers never wait for it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from .folders import PrivateFolder

LOCK = ".lock"
WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.005


@contextlib.contextmanager
def exclusive(folder: PrivateFolder) -> Iterator[bool]:
    """Hold the lock of `folder` for the length of the block.

    Yields:
        False when it could not be had: the file system knows no locks, or somebody held it for `WAIT_SECONDS`. The
        block runs all the same: a count that may be one too low is better than a death that nobody is told of.

    Raises:
        FolderUnusable: Something else lies there in its place.
        OSError: The file cannot be made (full disk, no descriptors left).
    """
    descriptor = folder.open(LOCK, os.O_RDWR | os.O_CREAT)
    held = False
    try:
        held = _wait_for(descriptor)
        yield held
    finally:
        if held:
            # Said aloud: a forked child that inherited the descriptor would hold on to the lock.
            with contextlib.suppress(OSError):
                _unlock(descriptor)
        os.close(descriptor)


def _wait_for(descriptor: int) -> bool:
    ends = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends:
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError):  # held by another; Windows calls it EACCES
            time.sleep(_PAUSE_SECONDS)
        except OSError:  # no locks here (ENOLCK, EOPNOTSUPP): waiting would not help
            return False
        else:
            return True
    return False


if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        import msvcrt

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _lock(descriptor: int) -> None:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)
