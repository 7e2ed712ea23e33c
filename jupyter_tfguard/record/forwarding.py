"""Passes the text of fd 2 on, in the kernel: to the client, and to the terminal or file to which fd 2 led originally.

In a kernel, fd 2 leads to a pipe of ipykernel. Its thread passes the text to the client and writes it to the kernel's
original stderr. What that thread has read when the kernel is killed is lost. So the guard's thread does both itself, and
ipykernel's thread has nothing to do.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from ..mounts import is_remote
from .late_stderr import NOTHING_LEFT, POSITION, opened_again
from .own_descriptors import OwnDescriptors, unread_bytes

STDERR = 2
_AGAIN_SECONDS = 0.001
_CHUNK_BYTES = 1 << 16  # the longest text of one call
_LINES_BYTES = 4096  # more may have to wait for the disk
# Through PyDLL the GIL is held during the call.
_HOLDING: Any = ctypes.PyDLL(None, use_errno=True) if sys.platform == "linux" else None
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)


class Client(Protocol):
    """Sends text to the client.

    Attributes:
        original: Descriptor of the kernel's original stderr, which stays open.
        pipe: Descriptor of the pipe to which fd 2 led, which stays open; None if there is none besides fd 2.
    """

    original: int
    pipe: int | None

    def send(self, text: bytes, *, is_last: bool) -> bool:
        """False if the client gets text through the old fd 2 only. `is_last`: no more text is ready."""


class Forwarding:
    """Where text goes that the guard reads from its pipe.

    Args:
        own: Gets the descriptors that are opened here.
        client: None: the text goes to the old fd 2, and nowhere else.

    Attributes:
        old: Descriptor of what fd 2 led to.
        original: Descriptor of the kernel's original stderr: `old` if there is no client.
        shown_bytes: Bytes passed to the client, or to the old fd 2, so far.
        position: Descriptor of the shared memory with the position; -1 if the system has none.

    Raises:
        OSError: fd 2 is not open, or no descriptor is free.
    """

    def __init__(self, own: OwnDescriptors, client: Client | None) -> None:
        self._own = own
        self._client = client
        if client is None or client.pipe is None:
            self.old = self.original = own.add(os.dup(STDERR))
        else:
            self.old = own.borrow(client.pipe)
        if client is not None:
            self.original = own.borrow(client.original)
        self.shown_bytes = 0
        self._offsets = (ctypes.c_int64 * 2)()
        self.position = -1
        self._at_once_bytes = 0
        self._sendfile: Any = None
        # Not on other systems; a sandbox may forbid it.
        with contextlib.suppress(AttributeError, OSError):
            sendfile = ctypes.CDLL(None, use_errno=True).sendfile
            sendfile.restype = ctypes.c_ssize_t
            position = own.add(os.memfd_create("tfguard-position"))
            os.pwrite(position, bytes(POSITION.size), 0)
            self._offsets = (ctypes.c_int64 * 2).from_address(_mapped(position))
            self.position, self._sendfile = position, sendfile
            kind = os.fstat(self.original).st_mode
            if stat.S_ISFIFO(kind):
                again = own.add(opened_again(self.original))
                if not os.get_blocking(again):
                    self.original, self._at_once_bytes = again, _CHUNK_BYTES
            elif stat.S_ISREG(kind) and _appends(self.original):
                self._at_once_bytes = _LINES_BYTES

    def begin_file(self, number: int) -> None:
        """Nothing of the file with this number was forwarded. Call it before the file is created."""
        self._offsets[number % 2] = 0

    def end_files(self) -> None:
        """Text is no longer recorded."""
        self._offsets[:] = list(POSITION.unpack(NOTHING_LEFT))

    @property
    def unread(self) -> int:
        """Bytes that ipykernel has not yet read from its pipe; 0 if it does not pass text on."""
        return 0 if self._client is not None else unread_bytes(self.old)

    def send(self, text: bytes, file: tuple[int, int] | None, *, is_last: bool) -> None:
        """Forward text.

        Args:
            text: The text.
            file: Number and descriptor of the file in which the text follows what was forwarded; None: it is in no file.
            is_last: No more text is ready.

        Raises:
            OSError: User code closed one of our descriptors.
        """
        target = self.original
        if self._client is not None:
            if not self._client.send(text, is_last=is_last):
                target = self.old
            self.shown_bytes += len(text)
        self._pass_on(target, text, file)
        if self._client is None:
            self.shown_bytes += len(text)

    def _pass_on(self, target: int, text: bytes, file: tuple[int, int] | None) -> None:
        if file is None:
            self._write(target, text)
        elif target == self.original and len(text) <= self._at_once_bytes:
            self._write_at_once(target, text, file[0] % 2)
        elif self._sendfile is not None and target == self.original:
            self._send_file(target, text, *file)
        else:
            self._write(target, text)
            self._offsets[file[0] % 2] += len(text)

    def _send_file(self, target: int, text: bytes, number: int, file: int) -> None:
        assert self._sendfile is not None
        slot = number % 2
        end = self._offsets[slot] + len(text)
        place = ctypes.byref(self._offsets, slot * ctypes.sizeof(ctypes.c_int64))
        while (left := end - self._offsets[slot]) > 0:
            self._own.check(target)
            ctypes.set_errno(0)
            if self._sendfile(target, file, place, ctypes.c_size_t(left)) > 0:
                continue
            bad = ctypes.get_errno()
            if bad == errno.EAGAIN:
                time.sleep(_AGAIN_SECONDS)
            elif bad != errno.EINTR:
                if bad in _UNSUPPORTED:  # a file opened for appending, or an old OS kernel
                    self._sendfile = None
                    self._write(target, text[-left:])
                # Also if the reader is gone, or the file was truncated.
                self._offsets[slot] = end

    def _write_at_once(self, target: int, text: bytes, slot: int) -> None:
        """Write, and note the position before another thread gets the GIL. For targets that take the text without a wait.

        `sendfile` would take one of a pipe's few buffers for each short line, and cannot append to a file.
        """
        room = select.poll()
        room.register(target, select.POLLOUT)
        while text:
            self._own.check(target)
            room.poll()
            count = _HOLDING.write(target, text, len(text))
            self._offsets[slot] += max(count, 0)
            if count < 0 and ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                count = len(text)  # the reader is gone
                self._offsets[slot] += count
            text = text[max(count, 0) :]

    def _write(self, target: int, text: bytes) -> None:
        while text:
            self._own.check(target)
            try:
                text = text[os.write(target, text) :]
            except BlockingIOError:  # another program on this terminal set O_NONBLOCK
                time.sleep(_AGAIN_SECONDS)
            except OSError:  # the reader is gone
                return


def _appends(descriptor: int) -> bool:
    """True for a file on this machine that was opened for appending."""
    import fcntl

    path = os.readlink(f"/proc/self/fd/{descriptor}")
    return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND) and not is_remote(Path(path))


def _mapped(descriptor: int) -> int:
    """Address at which the file is mapped, until the process ends. Python's `mmap` would keep a descriptor open."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    size, start = ctypes.c_size_t(POSITION.size), ctypes.c_int64(0)
    found = function(None, size, protection, mmap.MAP_SHARED, descriptor, start)
    if found is None or found == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return int(found)
