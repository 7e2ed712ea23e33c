"""What Linux can do with an open file and Python has no name for: being told of writes, and giving space back.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

# linux/falloc.h
_KEEP_SIZE = 0x01
_PUNCH_HOLE = 0x02
# sys/inotify.h; IN_MODIFY comes for a truncation too
_IN_MODIFY = 0x02
Identity = tuple[int, int]


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


def identity(descriptor: int) -> Identity | None:
    """What a descriptor stands for; None when it is closed.

    Of one that is kept for long it is asked before each use: user code may have closed it (as daemons close everything),
    and its number may stand for a file of the user's now.
    """
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def close_ours(descriptor: int, expected: Identity | None) -> None:
    """Close a descriptor, if it still stands for what it did."""
    if identity(descriptor) == expected:
        os.close(descriptor)


def checked_size(descriptor: int, expected: Identity | None) -> int:
    """Length of a file of ours.

    Raises:
        OSError: Somebody closed the descriptor, and perhaps it is a file of his now.
    """
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != expected:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return found.st_size


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
        try:
            self._wake_out, self._wake_in = os.pipe()
        except OSError:
            os.close(self._descriptor)
            raise
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._expected = {d: identity(d) for d in self._descriptors}
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
        self._poll.register(self._wake_out, select.POLLIN)
        self._outlet: int | None = None

    @property
    def _descriptors(self) -> tuple[int, int, int]:
        return self._descriptor, self._wake_out, self._wake_in

    def _check(self) -> None:
        """Raise OSError when somebody closed our descriptors: the numbers may stand for files of his by now."""
        if any(identity(d) != expected for d, expected in self._expected.items()):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def add(self, path: Path) -> None:
        """Watch one more file; the watch ends with the file.

        Raises:
            OSError: It cannot be watched.
        """
        if _libc().inotify_add_watch(self._descriptor, os.fsencode(path), _IN_MODIFY) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))

    def poll(
        self, outlet: int | None, seconds: float | None
    ) -> Callable[[], list[tuple[int, int]]]:
        """What to call to wait for a write or for :meth:`wake`, to be given to :meth:`written`; it runs no Python.

        Args:
            outlet: End the wait, too, when this descriptor can be written to.
            seconds: End it after so long, too.
        """
        if outlet != self._outlet:
            if self._outlet is not None:
                self._poll.unregister(self._outlet)
            if outlet is not None:
                self._poll.register(outlet, select.POLLOUT)
            self._outlet = outlet
        return functools.partial(self._poll.poll, None if seconds is None else seconds * 1000)

    def written(self, found: list[tuple[int, int]]) -> bool:
        """True when there was a write or :meth:`wake`. Raises OSError when somebody closed our descriptors."""
        self._check()
        ready = [descriptor for descriptor, _ in found]
        return self._wake_out in ready or self._descriptor in ready

    def written_since(self) -> bool:
        """True when there was a write since the last call. Raises OSError when somebody closed our descriptor."""
        if identity(self._descriptor) != self._expected.get(self._descriptor):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        try:
            return bool(os.read(self._descriptor, 65536))
        except BlockingIOError:
            return False

    def wake(self) -> None:
        """End the wait of :meth:`poll` now and from here on. Raises OSError when somebody closed our descriptors."""
        self._check()
        with contextlib.suppress(BlockingIOError):  # it is full of wake-ups already
            os.write(self._wake_in, b"x")

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor, expected in self._expected.items():
            close_ours(descriptor, expected)
        self._expected.clear()
