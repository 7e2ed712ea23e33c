"""The last native words: file descriptor 2 is a file of ours, and a thread forwards it to where it went before.

ipykernel reads fd 2 through a pipe within the same process, so what native code wrote last before a death is lost, and
more than a pipe's buffer while the GIL is held hangs the kernel for ever. A file keeps it: once ``write`` has returned,
the text survives even SIGKILL. The file is rotated by logical size, because a child under ``ulimit -f`` would die of a
long one. Files that a child still writes to are followed on, within bounds.

Text that Python writes to ``sys.stderr`` never comes here: ipykernel sends it off itself. Not on Windows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import FolderUnusable, SourceUnavailable
from .folders import PrivateFolder
from .linux_files import WriteWatch, punch, reserve

STDERR = 2
FILE_LIMIT_BYTES = 48 * 1024
FILES_KEPT = 2
FILES_FOLLOWED = 8
# Room for a whole file and its last words, taken beforehand: a disk that fills up later cannot swallow them.
_RESERVED_BYTES = 64 * 1024
_MINIMUM_FREE_BYTES = 4 * 1024 * 1024
# A child that holds an old file may write gigabytes: what was forwarded is given back in pieces of this size.
_PUNCH_BYTES = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_MEMORY_BYTES = 64
_POLL_SECONDS = 0.05
_IDLE_POLL_SECONDS = 0.25
_STOP_SECONDS = 2.0


@dataclass
class _Followed:
    """One of our files, read from its own descriptor.

    Attributes:
        forwarded: Bytes that were passed on.
        memory: The last bytes that were passed on; when they differ from the file, it was truncated and rewritten.
        punched: Bytes at its head whose disk space was given back.
    """

    number: int
    descriptor: int
    identity: tuple[int, int]
    forwarded: int = 0
    memory: bytes = b""
    punched: int = 0
    unlinked: bool = False


class StderrSpool:
    """Keeps and forwards what is written to fd 2, from :meth:`start` to :meth:`stop`.

    Args:
        folder: Where the files ``stderr.N.txt`` are made.
        on_problem: Told once, in a sentence, when the spool gives up by itself; fd 2 is then as it was before.
    """

    def __init__(self, folder: PrivateFolder, on_problem: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_problem = on_problem
        self._files: list[_Followed] = []
        self._old: int | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()  # fd 2 changes hands under it
        self._watch: WriteWatch | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_news = 0.0
        self._forwarding = True

    @property
    def running(self) -> bool:
        """True while fd 2 is kept."""
        return self._thread is not None and not self._stopping.is_set()

    def start(self) -> None:
        """Put the file in the place of fd 2.

        Raises:
            SourceUnavailable: Not on this system, or fd 2 is closed.
            FolderUnusable: The file cannot be made safely.
            OSError: The system refused; fd 2 is as it was.
        """
        if sys.platform == "win32":
            raise SourceUnavailable("Native text is not kept on Windows.")
        try:
            self._old = os.dup(STDERR)
        except OSError as bad:
            raise SourceUnavailable(f"File descriptor 2 is not open: {bad.strerror}.") from bad
        with contextlib.suppress(OSError):
            self._watch = WriteWatch()
        try:
            self._rotate()
        except BaseException:
            self._close_all()
            raise
        self._thread = threading.Thread(target=self._run, name="tfguard-stderr", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Put the old fd 2 back, unless user code has replaced ours meanwhile, and pass on what is left.

        Does nothing in a forked child: the file is the parent's.
        """
        thread, self._thread = self._thread, None
        if thread is None or os.getpid() != self._pid:
            return
        self._give_back()
        self._stopping.set()
        if self._watch is not None:
            self._watch.wake()
        thread.join(_STOP_SECONDS)
        if not thread.is_alive():  # otherwise it hangs in a write and still needs its descriptors
            self._close_all()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._wait()
                self._step()
            self._step()
        except (OSError, FolderUnusable) as bad:
            self._give_back()
            with contextlib.suppress(OSError):
                self._forward()
            self._on_problem(f"Native text is no longer kept: {bad}")

    def _wait(self) -> None:
        if self._watch is not None:
            self._watch.wait()
        else:
            quiet = time.monotonic() - self._last_news > 2.0
            self._stopping.wait(_IDLE_POLL_SECONDS if quiet else _POLL_SECONDS)

    def _step(self) -> None:
        truncated = self._forward()
        current = self._files[-1]
        if truncated or current.forwarded >= FILE_LIMIT_BYTES:
            self._rotate()
        self._give_space_back()

    # --- forwarding

    def _forward(self) -> bool:
        """Pass on what is new, oldest file first; True when somebody truncated the current file."""
        truncated = False
        for followed in self._files:
            if self._was_truncated(followed):
                followed.forwarded, followed.memory, followed.punched = 0, b"", 0
                truncated = followed is self._files[-1]
            while chunk := os.pread(followed.descriptor, _CHUNK_BYTES, followed.forwarded):
                self._pass_on(chunk)
                followed.forwarded += len(chunk)
                followed.memory = (followed.memory + chunk)[-_MEMORY_BYTES:]
                self._last_news = time.monotonic()
        return truncated

    def _was_truncated(self, followed: _Followed) -> bool:
        """``echo x > /dev/stderr`` in a child empties the file and writes at its start."""
        size = os.fstat(followed.descriptor).st_size
        if size < followed.forwarded:
            return True
        start = followed.forwarded - len(followed.memory)
        return os.pread(followed.descriptor, len(followed.memory), start) != followed.memory

    def _pass_on(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view and self._forwarding:
            assert self._old is not None
            try:
                view = view[os.write(self._old, view) :]
            except BlockingIOError:
                # Somebody made the other end non-blocking: wait for room.
                select.select([], [self._old], [], 1.0)
            except OSError:
                self._forwarding = False  # nobody reads any more; the file goes on keeping the text

    # --- files

    def _rotate(self) -> None:
        """Put a fresh file in the place of fd 2; the old ones are followed on while children may hold them."""
        number = self._files[-1].number + 1 if self._files else 0
        name = f"stderr.{number}.txt"
        with self._lock:
            if self._stopping.is_set() or (self._files and not self._is_ours()):
                return
            writing = self._folder.create(name, append=True)
            try:
                self._take_room(writing)
                reading = self._folder.open(name, os.O_RDONLY)
                self._files.append(_Followed(number, reading, _identity(reading)))
                os.dup2(writing, STDERR)
            finally:
                os.close(writing)
        self._forget_old(number)
        if self._watch is not None:
            self._watch.add(self._folder.path / name)

    def _take_room(self, descriptor: int) -> None:
        try:
            reserve(descriptor, _RESERVED_BYTES)
        except OSError as bad:
            if bad.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            # This file system cannot reserve: at least look whether there is room now.
            room = os.fstatvfs(descriptor)
            if room.f_bavail * room.f_frsize < _MINIMUM_FREE_BYTES:
                raise OSError(errno.ENOSPC, "the disk is nearly full") from bad

    def _forget_old(self, newest: int) -> None:
        for followed in self._files:
            if followed.number <= newest - FILES_KEPT and not followed.unlinked:
                followed.unlinked = True
                with contextlib.suppress(OSError):
                    os.unlink(self._folder.path / f"stderr.{followed.number}.txt")
        while len(self._files) > FILES_FOLLOWED:
            os.close(self._files.pop(0).descriptor)

    def _give_space_back(self) -> None:
        for followed in self._files:
            end = followed.forwarded - _RESERVED_BYTES
            if end - followed.punched < _PUNCH_BYTES:
                continue
            with contextlib.suppress(OSError, FolderUnusable):
                writing = os.open(
                    f"/proc/self/fd/{followed.descriptor}", os.O_WRONLY | os.O_CLOEXEC
                )
                try:
                    punch(writing, followed.punched, end - followed.punched)
                finally:
                    os.close(writing)
            followed.punched = end

    # --- fd 2

    def _is_ours(self) -> bool:
        try:
            identity = _identity(STDERR)
        except OSError:
            return False  # user code closed it
        return any(followed.identity == identity for followed in self._files)

    def _give_back(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._old is not None and self._is_ours():
                os.dup2(self._old, STDERR)

    def _close_all(self) -> None:
        for followed in self._files:
            os.close(followed.descriptor)
        self._files.clear()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._old is not None:
            os.close(self._old)
            self._old = None


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
