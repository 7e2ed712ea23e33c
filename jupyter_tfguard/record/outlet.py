"""The way out for native text: passes it on to where fd 2 went before, without ever waiting for whoever reads there.

Text that cannot leave at once is held in memory, up to :data:`WAITING_BYTES`. Beyond that it is left out, counted, and a
line stands in its place.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import stat
import sys
import time
from collections import deque

from ..units import human_bytes
from .linux_files import close_ours, identity

WAITING_BYTES = 8 * 1024 * 1024
# Of what is left out, the end is passed on all the same: it says most.
TAIL_BYTES = 64 * 1024
_RESUME_BYTES = WAITING_BYTES // 2
_PIECE_BYTES = 64 * 1024
# A pipe or socket that is ready takes so much without waiting: PIPE_BUF of POSIX, which is 4096 on Linux.
_READY_PIECE_BYTES = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
_FLUSH_SECONDS = 0.05


def gap_note(count: int) -> bytes:
    """The line in the place of `count` bytes that were left out."""
    return f"\n[tfguard: {human_bytes(count)} of native text were not passed on]\n".encode()


class Outlet:
    """Writes to a descriptor as fast as its reader takes it.

    Args:
        target: Where to; stays the caller's, and its flags, which other processes share, are not touched.

    Attributes:
        dropped_bytes: How much was left out so far.
    """

    def __init__(self, target: int) -> None:
        self.dropped_bytes = 0
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._sent_of_first = 0
        self._gap = 0
        self._tail = b""
        self._broken = False
        self._target = target
        self._own = _reopened(target)
        self._regular = stat.S_ISREG(os.fstat(target).st_mode)
        self._expected = identity(self.descriptor)

    @property
    def descriptor(self) -> int:
        """To wait for with POLLOUT while :attr:`waiting`."""
        return self._target if self._own is None else self._own

    @property
    def waiting(self) -> bool:
        """True while text waits for the reader."""
        return bool(self._queue)

    @property
    def all_read(self) -> bool:
        """True when the reader has taken everything; of anything but a pipe, when everything was passed on."""
        if self.waiting or self._gap or self._tail:
            return False
        try:
            import fcntl
            import termios

            if stat.S_ISFIFO(os.fstat(self.descriptor).st_mode):
                unread = array.array("i", [0])
                fcntl.ioctl(self.descriptor, termios.FIONREAD, unread)
                return not unread[0]
        except (OSError, ImportError):
            pass  # it cannot be told here
        return True

    @property
    def room(self) -> int:
        """Bytes that would be held now rather than left out."""
        return 0 if self._gap or self._tail else max(0, WAITING_BYTES - self._queued)

    def put(self, text: bytes) -> None:
        """Take text to be passed on; what there is no room for is left out."""
        if self._broken:
            return
        self._close_gap()
        fits = self.room
        self._append(text[:fits])
        late = self._tail + text[fits:]
        self._tail = late[-TAIL_BYTES:]
        self._count(len(late) - len(self._tail))

    def drop(self, count: int) -> None:
        """Count text that was left out before it came here."""
        if count > 0 and not self._broken:
            if self._tail:
                self._close_gap()
            self._count(count + len(self._tail))
            self._tail = b""

    def _count(self, count: int) -> None:
        self._gap += count
        self.dropped_bytes += count

    def _append(self, text: bytes) -> None:
        if text:
            self._queue.append(text)
            self._queued += len(text)

    def send(self) -> None:
        """Pass on what the reader takes now."""
        if self._queue and identity(self.descriptor) != self._expected:
            self._give_up()
        while True:
            self._close_gap()
            if not self._queue:
                return
            count = self._write(self._queue[0])
            if count is None:
                return
            self._sent_of_first += count
            self._queued -= count
            if self._sent_of_first == len(self._queue[0]):
                self._queue.popleft()
                self._sent_of_first = 0

    def _close_gap(self) -> None:
        if (self._gap or self._tail) and self._queued <= _RESUME_BYTES:
            if self._gap:
                self._append(gap_note(self._gap))
            self._append(self._tail)
            self._gap, self._tail = 0, b""

    def _write(self, text: bytes) -> int | None:
        """Write some of `text`; None when the reader takes nothing now, or is gone."""
        whole = self._own is not None or self._regular
        size = _PIECE_BYTES if whole else _READY_PIECE_BYTES
        piece = memoryview(text)[self._sent_of_first :][:size]
        try:
            if not whole and not self._ready(0):
                return None
            return os.write(self.descriptor, piece)
        except BlockingIOError:
            return None
        except OSError:  # nobody reads any more
            self._give_up()
            return None

    def _give_up(self) -> None:
        self._broken = True
        self._queue.clear()
        self._queued = self._gap = 0
        self._tail = b""

    def _ready(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))

    def flush(self, seconds: float) -> None:
        """Pass on what is left, for so long at most; what then remains is counted as left out."""
        end = time.monotonic() + seconds
        self.send()
        while self._queue and time.monotonic() < end:
            self._ready(_FLUSH_SECONDS)
            self.send()
        self._count(self._queued + len(self._tail))
        self._queue.clear()
        self._queued = self._sent_of_first = 0
        self._tail = b""

    def close(self) -> None:
        """Give back what was opened."""
        if self._own is not None:
            close_ours(self._own, self._expected)
            self._own = None


def _reopened(target: int) -> int | None:
    """A pipe or terminal opened a second time, so that O_NONBLOCK is ours alone; None where that is not possible."""
    mode = os.fstat(target).st_mode
    if sys.platform != "linux" or not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        return None
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        return os.open(f"/proc/self/fd/{target}", flags)
    return None
