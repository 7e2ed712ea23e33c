"""The last native words: file descriptor 2 is a file of ours, and a thread forwards it to where it went before.

ipykernel reads fd 2 through a pipe within the same process, so what native code wrote last before a death is lost, and
more than a pipe's buffer while the GIL is held hangs the kernel for ever. A file keeps it: once ``write`` has returned,
the text survives even SIGKILL. There are two files (textfile_pair.py), which take turns when one is full.

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
  what was written in the 15 ms before is lost, the first time in the 50 ms before if the writer made no pause (counted,
  unless it came through such a name itself). While such a program goes on (``tee /dev/stderr``), its text and that of the
  processes beside it may overwrite each other beyond the first 8 KiB.
* An abort with its last words finds the stacks of all threads whole, but for one in some 10,000 of the rig's: the thread
  keeps still while somebody writes (forwarder.py says why), for 50 ms at most, unless a file is nearly full.

Text that Python writes to ``sys.stderr`` never comes here: ipykernel sends it off itself. Not on Windows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable

from ..errors import SourceUnavailable
from ..threads import background_thread
from .folders import PrivateFolder
from .forwarder import FLUSH_SECONDS, Forwarder
from .linux_files import WriteWatch
from .native_since import Place
from .native_text import file_name
from .outlet import Outlet
from .stderr_descriptor import STDERR, StderrDescriptor
from .textfile_pair import FIRST_NUMBERS, TextFilePair

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

LEAST_FILE_SIZE_LIMIT_BYTES = 128 * 1024
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
        self._pair: TextFilePair | None = None
        self._stderr: StderrDescriptor | None = None
        self._outlet: Outlet | None = None
        self._watch: WriteWatch | None = None
        self._forwarder: Forwarder | None = None
        self._pid = os.getpid()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True while fd 2 is kept."""
        return self._thread is not None and not self._stopping.is_set()

    def start(self) -> None:
        """Put the file in the place of fd 2.

        Raises:
            SourceUnavailable: Not on this system, fd 2 is closed, or files may not be long enough.
            FolderUnusable: The file cannot be made safely.
            OSError: The system refused, a thread for one; fd 2 is as it was.
        """
        if sys.platform == "win32":
            raise SourceUnavailable("Native text is not kept on Windows.")
        _check_limit()
        try:
            before = os.dup(STDERR)
        except OSError as bad:
            raise SourceUnavailable(f"File descriptor 2 is not open: {bad.strerror}.") from bad
        with contextlib.suppress(OSError):
            self._watch = WriteWatch()
        try:
            self._stderr = StderrDescriptor(before, self._stopping)
            self._outlet = Outlet(before)
            self._pair = TextFilePair(self._folder, self._outlet, self._watch, self._stderr)
            self._forwarder = Forwarder(
                self._pair, self._outlet, self._watch, self._stopping, self._on_dropped
            )
            os.dup2(self._pair.current.descriptor, STDERR)
            self._thread = self._started()
        except BaseException:
            self._give_up()
            self._close_all()
            for number in FIRST_NUMBERS:  # what it took of a full disk is wanted elsewhere
                with contextlib.suppress(OSError):
                    os.unlink(self._folder.path / file_name(number))
            raise

    def place(self) -> Place | None:
        """Where the next native text goes, for :func:`~.native_since.native_text_since`; None while none is kept."""
        pair = self._pair
        if pair is None or not self.running:
            return None
        try:
            return pair.place()
        except OSError:
            return None  # given back just now

    def nudge(self) -> None:
        """Pass on soon what was written so far. Costs nothing."""
        if self._forwarder is not None:
            self._forwarder.nudge()

    def wait_read(self, seconds: float) -> bool:
        """Wait until the reader has all native text so far, so that what is printed next comes after it.

        Returns:
            False when it has not after so many seconds.
        """
        end, quiet = time.monotonic() + seconds, 0
        while self.running and quiet < _QUIET_LOOKS:
            pair, outlet = self._pair, self._outlet
            if pair is None or outlet is None:
                break
            self.nudge()
            with contextlib.suppress(OSError):
                quiet = quiet + 1 if pair.all_taken and outlet.all_read else 0
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
        thread.join(2 * FLUSH_SECONDS)
        # One that still lives hangs in a system call, and needs its descriptors.
        if not thread.is_alive():
            with contextlib.suppress(OSError):
                self._close_all()

    def leave_child(self) -> None:
        """In a forked child: give its copies of the descriptors back. fd 2 stays: what it writes there is kept."""
        self._thread = None
        with contextlib.suppress(OSError):
            self._close_all()

    def _started(self) -> threading.Thread:
        thread = background_thread(self._run, "tfguard-stderr")
        try:
            thread.start()
        except RuntimeError as bad:
            raise OSError(errno.EAGAIN, str(bad)) from bad
        return thread

    def _run(self) -> None:
        assert self._forwarder is not None
        try:
            self._forwarder.run()
        except Exception as bad:  # MemoryError for one
            self._give_up()
            self._on_problem(f"Native text is no longer kept: {str(bad) or type(bad).__name__}")

    def _give_up(self) -> None:
        """Whatever has failed, fd 2 must not stay without a reader."""
        if self._forwarder is not None:
            for attempt in (self._give_back, self._forwarder.take, self._forwarder.end):
                with contextlib.suppress(Exception):
                    attempt()

    def _give_back(self) -> None:
        assert self._stderr is not None
        assert self._pair is not None
        pair = self._pair
        self._stderr.give_back(lambda: pair.files)

    def _close_all(self) -> None:
        if self._pair is not None:
            self._pair.close()
            self._pair = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._outlet is not None:
            self._outlet.close()
            self._outlet = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


def _check_limit() -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_FILE_SIZE_LIMIT_BYTES:
        raise SourceUnavailable(
            f"Native text is not kept: files may have {limit // 1024} KiB here (ulimit -f), and it needs "
            f"{LEAST_FILE_SIZE_LIMIT_BYTES // 1024} KiB."
        )
