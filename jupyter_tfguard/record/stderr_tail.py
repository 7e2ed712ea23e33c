"""Records the stderr tail of a kernel: fd 2 becomes a pipe, and a thread saves its text to a file and forwards it.

In a kernel without the guard, fd 2 is a pipe too. The operating system moves the text from our pipe into a file
(``splice``). The thread reads it from there and passes it on (``forwarding.py``), with ordinary back-pressure: nothing is
dropped or reordered. At any moment each byte is in the file or still in the pipe. The watcher, or a helper process, keeps
the pipe's read end open as well, and records and forwards the rest after the kernel's death (``late_stderr.py``).

While native code holds the GIL, the thread stops after the first piece of text, and the pipe fills up. A writer then
blocks after 256 KiB; without the guard it blocks after 64 KiB.

Text that Python writes to ``sys.stderr`` does not pass through here: ipykernel sends it itself. Not on Windows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any

from ..errors import FolderUnusable, SourceUnavailable
from ..private_files import PrivateFolder
from ..threads import background_thread
from .forwarding import STDERR, Client, Forwarding
from .native_text import FILE_BYTES, file_name
from .own_descriptors import OwnDescriptors, unread_bytes

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

# What finishes the work after the kernel's end: the pipe's read end, the shared position, the original stderr.
PARTS = ("pipe", "position", "original")
LEAST_FILE_SIZE_LIMIT_BYTES = FILE_BYTES
# Not more: Linux allows 64 MiB for all pipes of a user, and makes further pipes tiny.
_PIPE_BYTES = 256 * 1024
_CHUNK_BYTES = 64 * 1024
# The file system (or a layer over it) does not support splice, or a sandbox forbids it.
_CANNOT_SPLICE = (errno.EINVAL, errno.ENOSYS, errno.EPERM)
_QUIET_SECONDS = 0.015
_LONGEST_SECONDS = 0.05
_DRAIN_SECONDS = 2.0
_CLOSE_SECONDS = 0.2  # the thread ends immediately if no child holds the pipe
_STEP_SECONDS = 0.001


class StderrTail:
    """Records and forwards text written to fd 2, from :meth:`start` to :meth:`stop`.

    Args:
        folder: Folder of the files ``stderr.N.txt``.
        on_problem: Called with a message when text is no longer recorded.
        client: Sends text to the client; None: text goes to the old fd 2 only.
    """

    def __init__(
        self,
        folder: PrivateFolder,
        on_problem: Callable[[str], None],
        client: Client | None = None,
    ) -> None:
        self._folder = folder
        self._on_problem = on_problem
        self._client = client
        self._pid = os.getpid()
        self._source = -1
        self._own = OwnDescriptors()
        self._forwarding: Forwarding | None = None
        self._file: tuple[int, int] | None = None  # number and descriptor
        self._splices = hasattr(os, "splice")
        self._sent = 0
        self._read_bytes = 0  # read from the pipe, if splice is not used
        self._read_lock = threading.Lock()
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True while fd 2 is our pipe and its text is recorded."""
        return self._thread is not None and self._file is not None and not self._stopping

    @property
    def shared(self) -> dict[str, Any] | None:
        """What finishes the work after the kernel's end: descriptor and inode of each part; None if there is no pipe."""
        found = self._forwarding
        if self._thread is None or self._stopping or found is None:
            return None
        descriptors = self._source, found.position, found.original
        return {
            name: {"descriptor": descriptor, "inode": self._own.inode(descriptor)}
            for name, descriptor in zip(PARTS, descriptors, strict=True)
        }

    def start(self) -> None:
        """Replace fd 2 by our pipe.

        Raises:
            SourceUnavailable: The system is not supported, fd 2 is closed, or the file size limit is too low.
            FolderUnusable: Could not create the file safely.
            OSError: A system call failed. fd 2 is unchanged.
        """
        if fcntl is None:
            raise SourceUnavailable("The stderr tail is not recorded on Windows.")
        _check_limit()
        try:
            self._forwarding = Forwarding(self._own, self._client)
        except OSError as bad:
            raise SourceUnavailable(f"File descriptor 2 is not open: {bad.strerror}.") from bad
        try:
            self._file = 1, self._own.add(self._folder.create(file_name(1)))
            source, target = os.pipe()
            try:
                self._source = self._own.add(source)
                with contextlib.suppress(AttributeError, OSError):  # not Linux; the user's limit
                    fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
                os.dup2(target, STDERR)
            finally:
                os.close(target)
            self._thread = self._started()
        except BaseException:
            self._restore_fd2()
            self._own.close_all()
            raise

    def written(self) -> int:
        """Bytes of native text so far: a position for :func:`~.native_text.native_text_since`."""
        while True:
            file = self._file
            if file is None or not self._splices:
                with self._read_lock:
                    return self._read_bytes + unread_bytes(self._source)
            size, unread = _size(file[1]), unread_bytes(self._source)
            if (file, size) == (self._file, _size(file[1])):  # else text was moved meanwhile
                return (file[0] - 1) * FILE_BYTES + size + unread

    def wait_forwarded(self, seconds: float) -> None:
        """Wait until the text so far was passed to the client, or read from the old fd 2.

        Text printed next then comes after it, and ipykernel's flush at the end of a cell sends it.

        Args:
            seconds: Longest wait.
        """
        wanted = self.written()
        end = time.monotonic() + seconds
        while (found := self._forwarding) and wanted > found.shown_bytes - found.unread:
            if self._stopping or time.monotonic() >= end:
                return
            time.sleep(_STEP_SECONDS)

    def stop(self) -> None:
        """Restore the old fd 2, unless user code has replaced ours, and forward the rest of the text.

        Children that inherited the pipe keep it. Their text is forwarded while the kernel is running.
        Does nothing in a forked child.
        """
        thread = self._thread
        if thread is None or os.getpid() != self._pid:
            return
        wanted = self.written()
        self._stopping = True
        self._restore_fd2()
        end = time.monotonic() + _DRAIN_SECONDS
        while thread.is_alive() and self._sent < wanted and time.monotonic() < end:
            time.sleep(_STEP_SECONDS)
        thread.join(_CLOSE_SECONDS)

    def leave_child(self) -> None:
        """In a forked child: close its copies of our descriptors. fd 2 stays open: the parent records its text."""
        self._thread = None
        self._own.close_all()

    def _restore_fd2(self) -> None:
        old = -1 if self._forwarding is None else self._forwarding.old
        if self._own.is_open_at(self._source, STDERR) and self._own.is_open_at(old, old):
            os.dup2(old, STDERR)

    # --- the thread

    def _started(self) -> threading.Thread:
        thread = background_thread(self._run, "tfguard-stderr")
        try:
            thread.start()
        except RuntimeError as bad:
            raise OSError(errno.EAGAIN, str(bad)) from bad
        return thread

    def _run(self) -> None:
        try:
            self._move()
        except Exception as bad:
            self._restore_fd2()
            self._stop_recording(bad)
        finally:
            self._stopping = True
            self._own.close_all()

    def _move(self) -> None:
        """Move text until all writers have closed the pipe.

        An abort follows its message immediately, and faulthandler then walks the stacks of all threads. It crashes if a
        thread enters or leaves Python functions meanwhile. So the inner loop calls C functions only. Forwarding text
        wakes ipykernel's threads, so it happens only after a moment without new text.

        Raises:
            OSError: User code closed one of our descriptors.
        """
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        while True:
            self._own.check(self._source)
            if not self._splices:
                ready.poll()
                if not self._copy():
                    return
                continue
            assert self._file is not None
            number, file = self._file
            self._own.check(file)
            inode = os.fstat(file).st_ino
            start = (number - 1) * FILE_BYTES
            size = self._sent - start
            moved = -1
            try:
                moved = os.splice(self._source, file, FILE_BYTES - size, offset_dst=size)
                size += moved
                began = time.monotonic()
                while (
                    moved
                    and size < FILE_BYTES
                    and time.monotonic() - began < _LONGEST_SECONDS
                    and ready.poll(_QUIET_SECONDS * 1000)
                    and os.fstat(file).st_ino == inode
                ):
                    moved = os.splice(self._source, file, FILE_BYTES - size, offset_dst=size)
                    size += moved
            except OSError as bad:
                self._read_bytes, self._splices = start + size, False
                if bad.errno not in _CANNOT_SPLICE:
                    self._forward(number, file, size)
                    self._stop_recording(bad)
                    continue
            self._forward(number, file, size)
            if not moved:
                return
            self._next_file()

    def _copy(self) -> bool:
        """Read a piece of text, write it to the file if there is one, and forward it. False at the end of the text."""
        file = self._file
        room = _CHUNK_BYTES
        if file is not None:
            size = self._sent - (file[0] - 1) * FILE_BYTES
            room = min(room, FILE_BYTES - size)
        with self._read_lock:
            text = os.read(self._source, room)
            self._read_bytes += len(text)
        if file is not None:
            self._own.check(file[1])
            try:
                if os.pwrite(file[1], text, size) < len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as bad:
                self._stop_recording(bad)
            time.sleep(_QUIET_SECONDS)
        self._send(text, file, is_last=True)
        self._next_file()
        return bool(text)

    def _forward(self, number: int, file: int, size: int) -> None:
        """Forward the text of a file up to this size."""
        start = (number - 1) * FILE_BYTES
        while (left := start + size - self._sent) > 0:
            text = os.pread(file, min(left, _CHUNK_BYTES), self._sent - start)
            if not text:  # the file was truncated
                self._sent += left
                return
            self._send(text, (number, file), is_last=len(text) == left)

    def _send(self, text: bytes, file: tuple[int, int] | None, *, is_last: bool) -> None:
        assert self._forwarding is not None
        self._forwarding.send(text, file, is_last=is_last)
        self._sent += len(text)

    def _next_file(self) -> None:
        """Start a new file when this one is full. The two newest files are kept."""
        if self._file is None or self._sent < self._file[0] * FILE_BYTES:
            return
        number, full = self._file
        try:
            if self._stopping:
                raise FolderUnusable("The recording has ended.")
            assert self._forwarding is not None
            self._forwarding.begin_file(number + 1)
            self._file = number + 1, self._own.add(self._folder.create(file_name(number + 1)))
        except (OSError, FolderUnusable) as bad:
            self._read_bytes, self._splices = self._sent, False
            self._stop_recording(bad)
            return
        self._own.close(full)
        if number > 1:
            with contextlib.suppress(OSError):
                self._folder.remove(file_name(number - 1))

    def _stop_recording(self, why: Exception) -> None:
        """Stop recording. Text is still forwarded."""
        self._file = None
        if self._forwarding is not None:
            self._forwarding.end_files()
        if not self._stopping:
            reason = why.strerror if isinstance(why, OSError) else str(why)
            self._on_problem(
                f"The stderr tail is no longer recorded: {reason or type(why).__name__}."
            )


def _check_limit() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_FILE_SIZE_LIMIT_BYTES:
        raise SourceUnavailable(
            f"The stderr tail is not recorded: `ulimit -f` limits files to {limit // 1024} KiB, and the recording needs "
            f"{LEAST_FILE_SIZE_LIMIT_BYTES // 1024} KiB."
        )


def _size(descriptor: int) -> int:
    try:
        return os.fstat(descriptor).st_size
    except OSError:
        return 0
