"""Holds the read end of a kernel's native stderr, so that the stderr tail is not lost when the kernel ends.

While the kernel runs nothing is read here: the kernel reads the pipe itself (``record/stderr_tail.py``). After its end
the rest is read at once and the pipe is closed, so that a child that outlives the kernel gets EPIPE at its next write,
as it would without tfguard.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
import time
from typing import Any

from ..record.identity import ProcessIdentity

_LIMIT_BYTES = 1024 * 1024


class HeldPipe:
    """The read end of one kernel's pipe, from :meth:`hold` to :meth:`last_words` or :meth:`close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._inode: int | None = None
        self._descriptor: int | None = None

    def hold(self, process: ProcessIdentity, claimed: Any) -> None:
        """Hold the pipe named in the kernel's header; release it if the header names none.

        Args:
            process: The kernel's process.
            claimed: ``{"descriptor", "inode"}`` or None; not trusted.
        """
        fields = claimed if isinstance(claimed, dict) else {}
        descriptor, inode = fields.get("descriptor"), fields.get("inode")
        if not (type(descriptor) is int and type(inode) is int):
            descriptor = inode = None
        with self._lock:
            if self._closed or inode == self._inode:
                return
            self._release()
            self._inode = inode
            if descriptor is not None:
                with contextlib.suppress(OSError):  # the process just ended, or access is denied
                    self._open(process, f"/proc/{process.pid}/fd/{descriptor}")

    def _open(self, process: ProcessIdentity, path: str) -> None:
        # Checked before opening: opening a device may have side effects.
        if not self._is_it(os.stat(path)):
            return
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if self._is_it(os.fstat(opened)) and process.is_running():
            self._descriptor = opened
        else:
            os.close(opened)

    def _is_it(self, found: os.stat_result) -> bool:
        return stat.S_ISFIFO(found.st_mode) and found.st_ino == self._inode

    def detach(self) -> HeldPipe:
        """Move the pipe to a new object, which is returned; this one is closed."""
        other = HeldPipe()
        with self._lock:
            other._descriptor, self._descriptor = self._descriptor, None
            self._closed = True
        return other

    def last_words(self, wait_seconds: float = 0.0) -> bytes:
        """Read the rest of the pipe after the kernel ended, and close the pipe.

        Args:
            wait_seconds: How long to wait at most for children that still hold the pipe: Python's resource tracker
                reports leaked shared memory after its kernel has ended.
        """
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            self._closed = True
        if descriptor is None:
            return b""
        try:
            return _read_to_the_end(descriptor, time.monotonic() + wait_seconds)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the pipe permanently; idempotent."""
        with self._lock:
            self._closed = True
            self._release()

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _read_to_the_end(descriptor: int, deadline: float) -> bytes:
    """Read until the other end is closed or the monotonic deadline; at most 1 MiB."""
    found = bytearray()
    more = select.poll()
    more.register(descriptor, select.POLLIN)
    while len(found) < _LIMIT_BYTES:
        try:
            part = os.read(descriptor, _LIMIT_BYTES - len(found))
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0 or not more.poll(left * 1000):
                break
        else:
            if not part:
                break
            found += part
    return bytes(found)
