"""What Linux can do with an open file and Python has no name for: being told of writes, reserving and giving back space.

On other systems, and where the C library refuses, :class:`OSError` says so and the caller does without.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

# linux/falloc.h
_KEEP_SIZE = 0x01
_PUNCH_HOLE = 0x02
# sys/inotify.h; IN_MODIFY comes for a truncation too
_IN_MODIFY = 0x02
_COALESCE_SECONDS = 0.005


@functools.cache
def _libc() -> Any:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has this")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return libc


def _fallocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    if _libc().fallocate(descriptor, mode, offset, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def reserve(descriptor: int, length: int) -> None:
    """Take `length` bytes of disk for the file without making it longer.

    Raises:
        OSError: ENOSPC or EDQUOT: there is no room. ENOSYS or EOPNOTSUPP: this system cannot.
    """
    _fallocate(descriptor, _KEEP_SIZE, 0, length)


def punch(descriptor: int, start: int, length: int) -> None:
    """Give the disk space of a part of the file back; its length stays.

    Raises:
        OSError: This file system cannot.
    """
    _fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, start, length)


class WriteWatch:
    """Sleeps until one of some files is written to. Costs nothing while nobody writes.

    Raises:
        OSError: No inotify here, or this user has no instance left.
    """

    def __init__(self) -> None:
        libc = _libc()
        # IN_NONBLOCK and IN_CLOEXEC have the values of O_NONBLOCK and O_CLOEXEC
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
        self._poll.register(self._wake_out, select.POLLIN)

    def add(self, path: Path) -> None:
        """Watch one more file; the watch ends with the file.

        Raises:
            OSError: It cannot be watched.
        """
        if _libc().inotify_add_watch(self._descriptor, os.fsencode(path), _IN_MODIFY) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))

    def wait(self) -> None:
        """Return some milliseconds after a write, so that many writes are one; at once after :meth:`wake`."""
        ready = [descriptor for descriptor, _ in self._poll.poll()]
        if self._wake_out in ready:
            return
        time.sleep(_COALESCE_SECONDS)
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, 65536)

    def wake(self) -> None:
        """End :meth:`wait` now and from here on."""
        with contextlib.suppress(BlockingIOError):  # it is full of wake-ups already
            os.write(self._wake_in, b"x")

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in (self._descriptor, self._wake_out, self._wake_in):
            os.close(descriptor)
