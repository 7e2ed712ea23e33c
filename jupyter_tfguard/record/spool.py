"""The last native words: file descriptor 2 is a file of ours, and a thread forwards it to where it went before.

ipykernel reads fd 2 through a pipe within the same process, so what native code wrote last before a death is lost, and
more than a pipe's buffer while the GIL is held hangs the kernel for ever. A file keeps it: once ``write`` has returned,
the text survives even SIGKILL. There are two files (textfile.py), which take turns when one is full.

What holds, and where it ends:

* The last 64 KiB are kept, whatever was written and however the process dies. They need no space that was not taken
  before: a disk that fills up later does not matter. (Only who writes more than 24 KiB between two looks of the thread
  meets the full disk there, as with any file.)
* Everything is forwarded, in order, as long as whoever reads there takes it at the rate at which it is written: 4 MiB/s is
  tested, ``tests/benchmarks/stderr_rate.py`` measures what an ipykernel takes. Up to 8 MiB more wait in memory. What comes
  on top is left out and counted; a line stands in its place, the last 64 KiB before the text goes on are passed on.
  Neither the writer nor the kernel ever waits for the reader.
* A file is 96 KiB long, on the disk too. It is longer only between two looks of the thread: by what is written within
  some milliseconds, within some 10 ms beside a busy Python loop, and for as long as native code holds the GIL, when no
  thread of Python's runs. Then it is cut back. In the last case a watcher outside (``give_space_back``) bounds the space
  on the disk to 16 MiB and what is written in a second or two; where there is none, nothing does. The kernel would have
  hung for ever there without us.
* A child under ``ulimit -f`` of 128 KiB or more lives, also when it was started long ago, as long as no more than 32 KiB
  are written between two looks. With a smaller limit on the kernel itself fd 2 is left alone.
* Who opens ``/dev/stderr`` by its name writes into the file from a place of his own. ``echo x > /dev/stderr`` empties it:
  what was written in the milliseconds before is lost (counted, unless it came through such a name itself). While such a
  program goes on (``tee /dev/stderr``), its text and that of the processes beside it may overwrite each other beyond the
  first 8 KiB.

Text that Python writes to ``sys.stderr`` never comes here: ipykernel sends it off itself. Not on Windows.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence

from ..errors import SourceUnavailable
from .folders import PrivateFolder
from .linux_files import Identity, WriteWatch, close_ours, identity
from .native_since import Place
from .outlet import Outlet
from .textfile import KEPT_BYTES, NUMBER_STEP, OpenedAnew, TextFile, file_name

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

STDERR = 2
LEAST_FILE_SIZE_LIMIT_BYTES = 128 * 1024
OPENED_FOLLOWED = 8
_POLL_SECONDS = 0.05
_IDLE_POLL_SECONDS = 0.25
# While a reader empties its pipe: a pause makes few large writes of many small ones.
_SENDING_SECONDS = 0.002
_HURRY_BYTES = 16 * 1024
_TELL_SECONDS = 1.0
_STOP_SECONDS = 2.0
_LOOK_SECONDS = 0.005
# One look may fall between two steps of text that is on its way.
_QUIET_LOOKS = 3


class StderrSpool:
    """Keeps and forwards what is written to fd 2, from :meth:`start` to :meth:`stop`.

    Args:
        folder: Where the files ``stderr.N.txt`` are made.
        on_problem: Told once, in a sentence, when the spool gives up by itself; fd 2 is then as it was before.
        on_dropped: Told how many bytes were not forwarded so far, at most once a second.
    """

    def __init__(
        self,
        folder: PrivateFolder,
        on_problem: Callable[[str], None],
        on_dropped: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._folder = folder
        self._on_problem = on_problem
        self._on_dropped = on_dropped
        self._current: TextFile | None = None
        self._other: TextFile | None = None
        self._opened: list[OpenedAnew] = []
        self._copied: int | None = None
        self._old: int | None = None
        self._old_identity: Identity | None = None
        self._outlet: Outlet | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()  # fd 2 changes hands under it
        self._watch: WriteWatch | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_news = 0.0
        self._hurry = False
        self._told = 0
        self._told_when = 0.0

    @property
    def running(self) -> bool:
        """True while fd 2 is kept."""
        return self._thread is not None and not self._stopping.is_set()

    def start(self) -> None:
        """Put the file in the place of fd 2.

        Raises:
            SourceUnavailable: Not on this system, fd 2 is closed, or files may not be long enough.
            FolderUnusable: The file cannot be made safely.
            OSError: The system refused; fd 2 is as it was.
        """
        if sys.platform == "win32":
            raise SourceUnavailable("Native text is not kept on Windows.")
        _check_limit()
        try:
            self._old = os.dup(STDERR)
        except OSError as bad:
            raise SourceUnavailable(f"File descriptor 2 is not open: {bad.strerror}.") from bad
        with contextlib.suppress(OSError):
            self._watch = WriteWatch()
        try:
            self._old_identity = identity(self._old)
            self._outlet = Outlet(self._old)
            self._other = self._make(NUMBER_STEP)
            self._current = self._make(2 * NUMBER_STEP)
            os.dup2(self._current.descriptor, STDERR)
        except BaseException:
            self._close_all()
            for number in (
                NUMBER_STEP,
                2 * NUMBER_STEP,
            ):  # what it took of a full disk is wanted elsewhere
                with contextlib.suppress(OSError):
                    os.unlink(self._folder.path / file_name(number))
            raise
        self._thread = threading.Thread(target=self._run, name="tfguard-stderr", daemon=True)
        self._thread.start()

    def place(self) -> Place | None:
        """Where the next native text goes, for :func:`~.native_since.native_text_since`; None while none is kept."""
        current = self._current
        if current is None or not self.running:
            return None
        try:
            return Place(current.number, current.position())
        except OSError:
            return None  # given back just now

    def wait_read(self, seconds: float) -> bool:
        """Wait until the reader has all native text so far, so that what is printed next comes after it.

        Returns:
            False when it has not after so many seconds.
        """
        end, quiet = time.monotonic() + seconds, 0
        while self.running and quiet < _QUIET_LOOKS:
            current, outlet = self._current, self._outlet
            if current is None or outlet is None:
                break
            with contextlib.suppress(OSError):
                quiet = quiet + 1 if current.taken >= current.position() and outlet.all_read else 0
            if time.monotonic() >= end:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def stop(self) -> None:
        """Put the old fd 2 back, unless user code has replaced ours meanwhile, and pass on what is left.

        Does nothing in a forked child: the file is the parent's.
        """
        thread, self._thread = self._thread, None
        if thread is None or os.getpid() != self._pid:
            return
        self._give_back()
        if self._watch is not None:
            with contextlib.suppress(OSError):
                self._watch.wake()
        thread.join(2 * _STOP_SECONDS)
        # One that still lives hangs in a system call, and needs its descriptors.
        if not thread.is_alive():
            with contextlib.suppress(OSError):
                self._close_all()

    def leave_child(self) -> None:
        """In a forked child: give its copies of the descriptors back. fd 2 stays: what it writes there is kept."""
        self._thread = None
        with contextlib.suppress(OSError):
            self._close_all()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                written = self._wait()
                self._step(written)
            self._take()
            self._end()
        except (
            Exception
        ) as bad:  # MemoryError for one; whatever it is, fd 2 must not stay without a reader
            for attempt in (self._give_back, self._take, self._end):
                with contextlib.suppress(Exception):
                    attempt()
            self._on_problem(f"Native text is no longer kept: {str(bad) or type(bad).__name__}")

    def _wait(self) -> bool:
        """True when there may be something new to take."""
        assert self._outlet is not None
        sending = self._outlet.waiting
        if sending and not self._hurry:
            time.sleep(_SENDING_SECONDS)
        if self._watch is not None:
            untold = self._outlet.dropped_bytes != self._told
            written = self._watch.wait(
                self._outlet.descriptor if sending else None,
                hurry=self._hurry,
                seconds=_POLL_SECONDS if self._hurry else _TELL_SECONDS if untold else None,
            )
            return written or self._hurry
        quiet = time.monotonic() - self._last_news > 2.0
        seconds = _IDLE_POLL_SECONDS if quiet else _POLL_SECONDS
        self._stopping.wait(_SENDING_SECONDS if sending or self._hurry else seconds)
        return True

    def _step(self, written: bool) -> None:
        assert self._outlet is not None
        if written:
            self._look_who_is_current()
            self._take()
            if self._take_turns():
                self._take_once()  # what came into the old file until then: its last, but for children
            if not self._hurry:  # otherwise it is soon to be cleared anyway
                self._cut_overgrown()
        self._outlet.send()
        self._tell()

    def _end(self) -> None:
        assert self._outlet is not None
        self._outlet.flush(_STOP_SECONDS)
        self._tell(at_once=True)

    def _tell(self, *, at_once: bool = False) -> None:
        assert self._outlet is not None
        dropped, now = self._outlet.dropped_bytes, time.monotonic()
        if dropped != self._told and (at_once or now - self._told_when >= _TELL_SECONDS):
            self._told, self._told_when = dropped, now
            self._on_dropped(dropped)

    # --- files

    def _make(self, number: int, head: bytes = b"") -> TextFile:
        made = TextFile(self._folder, number, head)
        if self._watch is not None:
            try:
                self._watch.add(self._folder.path / file_name(number))
            except BaseException:
                made.close()
                raise
        return made

    def _take(self) -> None:
        """Hand on what is new, oldest first."""
        taken, replaced = self._take_once()
        if replaced:  # what else is in there already
            taken += self._take_once()[0]
        self._hurry = taken >= _HURRY_BYTES
        if taken:
            self._last_news = time.monotonic()

    def _take_once(self) -> tuple[int, bool]:
        assert self._outlet is not None
        taken, replaced = 0, False
        for opened in self._opened:
            assert self._current is not None
            opened.take(self._outlet, self._current)
        for file in (self._other, self._current):
            assert file is not None
            before = file.taken
            anew = file.take(self._outlet)
            taken += file.taken - before
            if anew is not None:
                self._replace(file, anew)
                replaced = True
        return taken, replaced

    def _replace(self, file: TextFile, anew: OpenedAnew) -> None:
        """Put a fresh file in the place of one that somebody opened by its name; it begins with the last words."""
        is_current = file is self._current
        fresh = self._make(file.number, file.last[-KEPT_BYTES // 2 :] if is_current else file.last)
        self._opened.append(anew)
        if is_current:
            self._current = fresh
        else:
            self._other = fresh
        self._put(fresh, instead_of=[anew])
        while len(self._opened) > OPENED_FOLLOWED:
            self._opened.pop(0).close()

    def _look_who_is_current(self) -> None:
        """User code may have kept a copy of fd 2 and put it back: then the other file is the newest again."""
        assert self._current is not None
        assert self._other is not None
        if self._is_on_stderr(self._other):
            self._current, self._other = self._other, self._current
            self._make_newest()
        elif self._is_on_stderr(*self._opened):
            self._put(self._current, instead_of=self._opened)

    def _make_newest(self) -> None:
        assert self._current is not None
        assert self._other is not None
        name, number = file_name(self._current.number), self._other.number + NUMBER_STEP
        os.rename(self._folder.path / name, self._folder.path / file_name(number))
        self._current.number = number

    def _take_turns(self) -> bool:
        """Write on in the other file when this one is full; True when they have changed places."""
        assert self._current is not None
        assert self._other is not None
        assert self._outlet is not None
        if not self._current.full or not self._is_on_stderr(self._current):
            return False
        # At every moment the last words lie in files that are not touched just then.
        late: list[bytes] = []
        if self._other.used:
            self._other.rewind(self._outlet, late.append)
        self._current, self._other = self._other, self._current
        self._make_newest()
        self._put(self._current, instead_of=[self._other])
        self._copy(self._current, b"".join(late))
        return True

    def _cut_overgrown(self) -> None:
        assert self._current is not None
        assert self._other is not None
        if self._other.overgrown and not self._is_on_stderr(self._other):
            self._cut(self._other)
        if self._current.overgrown and not self._is_on_stderr(self._current):
            self._cut(self._current)  # user code has lent fd 2, and children write on

    def _cut(self, file: TextFile) -> None:
        """Bring an overgrown file, to which only children write, back to its length; its last words go to a copy."""
        assert self._outlet is not None
        last = file.last
        if self._copy(file, last):  # without room for it the file stays long until its turn
            late: list[bytes] = []
            file.rewind(self._outlet, late.append)
            self._copy(file, (last + b"".join(late))[-KEPT_BYTES:])

    def _copy(self, file: TextFile, text: bytes) -> bool:
        """Keep text that was cleared from a file under the number before its own, and none that was kept earlier."""
        number = file.number - 1 if text else None
        if number is not None:
            try:
                self._folder.write_whole(file_name(number), text)
            except OSError:
                return False
        if self._copied not in (None, number):
            with contextlib.suppress(OSError):
                os.unlink(self._folder.path / file_name(self._copied))
        self._copied = number
        return True

    # --- fd 2

    def _put(self, file: TextFile, *, instead_of: Sequence[TextFile | OpenedAnew]) -> None:
        with self._lock:
            if not self._stopping.is_set() and self._is_on_stderr(*instead_of):
                os.dup2(file.descriptor, STDERR)

    def _is_on_stderr(self, *files: TextFile | OpenedAnew) -> bool:
        found = identity(STDERR)  # None: user code closed it
        return found is not None and any(file.identity == found for file in files)

    def _give_back(self) -> None:
        with self._lock:
            self._stopping.set()
            ours = [file for file in (self._current, self._other) if file is not None]
            if (
                self._old is not None
                and identity(self._old) == self._old_identity
                and self._is_on_stderr(*ours, *self._opened)
            ):
                os.dup2(self._old, STDERR)

    def _close_all(self) -> None:
        files: tuple[TextFile | OpenedAnew | None, ...] = (self._current, self._other)
        for file in (*files, *self._opened):
            if file is not None:
                file.close()
        self._current = self._other = None
        self._opened.clear()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._outlet is not None:
            self._outlet.close()
            self._outlet = None
        if self._old is not None:
            close_ours(self._old, self._old_identity)
            self._old = None


def _check_limit() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_FILE_SIZE_LIMIT_BYTES:
        raise SourceUnavailable(
            f"Native text is not kept: files may have {limit // 1024} KiB here (ulimit -f), and it needs "
            f"{LEAST_FILE_SIZE_LIMIT_BYTES // 1024} KiB."
        )
