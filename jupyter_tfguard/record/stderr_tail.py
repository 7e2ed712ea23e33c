"""Records the stderr tail of a kernel: fd 2 becomes a pipe, and a thread saves its text to a file and forwards it.

In a kernel without the guard, fd 2 is a pipe too. The operating system moves the text from our pipe into a file
(``splice``). The thread reads it from there and writes it to the old fd 2, with ordinary back-pressure: nothing is
dropped or reordered. At any moment each byte is in the file or still in the pipe. The watcher keeps the pipe's read end
open as well (``watch/held_pipe.py``) and reads the rest after the kernel's death. Without a watcher the rest is lost.

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

from ..errors import FolderUnusable, SourceUnavailable
from ..private_files import PrivateFolder
from ..threads import background_thread
from .native_text import FILE_BYTES, file_name
from .own_descriptors import Identity, close_ours, identity, unread_bytes

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

STDERR = 2
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
    """

    def __init__(self, folder: PrivateFolder, on_problem: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_problem = on_problem
        self._pid = os.getpid()
        self._source = self._outlet = -1
        self._identities: dict[int, Identity] = {}
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
    def pipe(self) -> dict[str, int] | None:
        """Descriptor and inode of the pipe's read end, for the watcher; None if there is no pipe."""
        expected = self._identities.get(self._source)
        if self._thread is None or self._stopping or expected is None:
            return None
        return {"descriptor": self._source, "inode": expected[1]}

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
            self._outlet = self._own(os.dup(STDERR))
        except OSError as bad:
            raise SourceUnavailable(f"File descriptor 2 is not open: {bad.strerror}.") from bad
        try:
            self._file = 1, self._own(self._folder.create(file_name(1)))
            source, target = os.pipe()
            try:
                self._source = self._own(source)
                with contextlib.suppress(AttributeError, OSError):  # not Linux; the user's limit
                    fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
                os.dup2(target, STDERR)
            finally:
                os.close(target)
            self._thread = self._started()
        except BaseException:
            self._restore_fd2()
            self._close_all()
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

    def wait_forwarded(
        self, seconds: float, reader_waits: Callable[[], bool] = lambda: True
    ) -> None:
        """Wait until the text so far was forwarded and read from the old fd 2.

        Text printed next then comes after it, and ipykernel's flush at the end of a cell sends it.

        Args:
            seconds: Longest wait.
            reader_waits: Whether the reader has passed on what it read.
        """
        wanted = self.written()
        end = time.monotonic() + seconds
        while wanted > self._sent - unread_bytes(self._outlet) or not reader_waits():
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
        self._close_all()

    def _own(self, descriptor: int) -> int:
        try:
            found = os.fstat(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        self._identities[descriptor] = found.st_dev, found.st_ino
        return descriptor

    def _is_ours(self, descriptor: int) -> bool:
        """False if user code closed it: the descriptor number may have been reused."""
        return identity(descriptor) == self._identities.get(descriptor, ())

    def _restore_fd2(self) -> None:
        is_our_pipe = identity(STDERR) == self._identities.get(self._source, ())
        if is_our_pipe and self._is_ours(self._outlet):
            os.dup2(self._outlet, STDERR)

    def _close_all(self) -> None:
        while self._identities:
            close_ours(*self._identities.popitem())

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
            self._close_all()

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
            self._check(self._source)
            if not self._splices:
                ready.poll()
                if not self._copy():
                    return
                continue
            assert self._file is not None
            number, file = self._file
            self._check(file)
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
                    self._forward(file, start, size)
                    self._stop_recording(bad)
                    continue
            self._forward(file, start, size)
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
            self._check(file[1])
            try:
                if os.pwrite(file[1], text, size) < len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as bad:
                self._stop_recording(bad)
            time.sleep(_QUIET_SECONDS)
        self._send(text)
        self._next_file()
        return bool(text)

    def _forward(self, file: int, start: int, size: int) -> None:
        while (left := start + size - self._sent) > 0:
            text = os.pread(file, min(left, _CHUNK_BYTES), self._sent - start)
            if not text:  # the file was truncated
                self._sent += left
            self._send(text)

    def _send(self, text: bytes) -> None:
        while text:
            self._check(self._outlet)
            try:
                count = os.write(self._outlet, text)
            except BlockingIOError:  # another program on this terminal set O_NONBLOCK
                time.sleep(_STEP_SECONDS)
                continue
            except OSError:  # the reader is gone
                count = len(text)
            self._sent += count
            text = text[count:]

    def _next_file(self) -> None:
        """Start a new file when this one is full. The two newest files are kept."""
        if self._file is None or self._sent < self._file[0] * FILE_BYTES:
            return
        number, full = self._file
        try:
            if self._stopping:
                raise FolderUnusable("The recording has ended.")
            self._file = number + 1, self._own(self._folder.create(file_name(number + 1)))
        except (OSError, FolderUnusable) as bad:
            self._read_bytes, self._splices = self._sent, False
            self._stop_recording(bad)
            return
        close_ours(full, self._identities.pop(full, None))
        if number > 1:
            with contextlib.suppress(OSError):
                self._folder.remove(file_name(number - 1))

    def _stop_recording(self, why: Exception) -> None:
        """Stop recording. Text is still forwarded."""
        self._file = None
        if not self._stopping:
            reason = why.strerror if isinstance(why, OSError) else str(why)
            self._on_problem(
                f"The stderr tail is no longer recorded: {reason or type(why).__name__}."
            )

    def _check(self, descriptor: int) -> None:
        if not self._is_ours(descriptor):
            raise OSError(errno.EBADF, "other code closed a file descriptor of the guard")


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
