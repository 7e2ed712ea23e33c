"""Records the stderr tail, and the Python stacks at a fatal signal or during a hang."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from ..collectors.procfs import read_small
from ..errors import SourceUnavailable
from ..private_files import PrivateFolder
from ..record.native_text import last_words, native_text_since
from ..record.recording import Recording
from ..record.stacks import HEADER_KEY
from ..record.stderr_tail import StderrTail
from ..shield import part, shielded
from .faults import FaultFiles
from .stacks import StacksOnRequest, is_pipe_reader

_CELL_END_SECONDS = 0.5
_HIGHEST_DESCRIPTOR = 0xFFFFFF


class NativeParts:
    """The parts that write native text and stacks to the recording. Parts that fail are left out and reported.

    Args:
        problems: A sentence is added for each part that cannot start.
        on_problem: Called with a sentence when native text is no longer recorded.
    """

    def __init__(self, problems: list[str], on_problem: Callable[[str], None]) -> None:
        self._problems = problems
        self._on_problem = on_problem
        self._folder: PrivateFolder | None = None
        self._faults: FaultFiles | None = None
        self._faulthandler_state = "off"
        self._tail: StderrTail | None = None
        self._stacks: StacksOnRequest | None = None

    def start(self, folder: PrivateFolder, *, keep_text: bool) -> None:
        """Start recording stack traces at fatal signals, and native text if `keep_text`."""
        self._folder = folder
        with part("stack traces at fatal signals", self._problems):
            self._faults = FaultFiles(folder)
            self._faulthandler_state = self._faults.start()
        if keep_text:
            with part("stderr tail", self._problems):
                tail = StderrTail(folder, self._on_problem)
                tail.start()
                self._tail = tail

    def offer_stacks(self, recording: Recording, thread: int | None) -> None:
        """Serve requests for stacks, and announce this in the header.

        Args:
            thread: Native id of the thread that calls :meth:`tick`.
        """
        with part("stack traces of a hung kernel", self._problems):
            stacks = StacksOnRequest(
                recording.folder, lambda fields: recording.write_header({HEADER_KEY: fields})
            )
            stacks.start(thread)
            self._stacks = stacks

    def state(self) -> dict[str, Any]:
        """Which parts are active, for the header."""
        return {
            "faulthandler": self._faulthandler_state,
            "stderr": self._tail is not None and self._tail.running,
            "stderr_pipe": None if self._tail is None else self._tail.pipe,
        }

    def place(self) -> int | None:
        """Bytes of native text so far; None while none is recorded."""
        return None if self._tail is None else self._tail.written()

    def text(self, since: int | None = None) -> str:
        """Native text from an offset on, or the stderr tail; empty if none is recorded."""
        if self._folder is None or self._tail is None:
            return ""
        return last_words(self._folder) if since is None else native_text_since(self._folder, since)

    def wait_forwarded(self, seconds: float) -> None:
        """Wait until the native text so far was forwarded, for at most `seconds`."""
        if self._tail is not None:
            self._tail.wait_forwarded(seconds, _pipe_readers_wait)

    def cell_ends(self) -> None:
        """Called after each cell: its native text must be forwarded before ipykernel reports the end of the cell."""
        with contextlib.suppress(KeyboardInterrupt):  # Stop ends only this wait: the cell has ended
            self.wait_forwarded(_CELL_END_SECONDS)

    def tick(self) -> None:
        """Called with every sample: serve a request for stacks, if there is one."""
        if self._stacks is not None:
            self._stacks.tick()

    def stop(self) -> None:
        """Stop every part; a failure of one does not prevent the others from stopping."""
        for ended in (self._tail, self._faults, self._stacks):
            if ended is not None:
                with shielded("unloading"):
                    ended.stop()
        self._tail = self._faults = self._stacks = None

    def leave_child(self) -> None:
        """In a forked child: undo what it has inherited. A killed worker must not look like a crashed kernel."""
        tail, self._tail = self._tail, None
        if tail is not None:
            with shielded("forked child"):
                tail.leave_child()
        self.stop()


def _pipe_readers_wait() -> bool:
    """True if ipykernel's threads that read fd 1 and 2 wait for text, and so have forwarded what they read.

    Also True if the system does not show what a thread is doing.
    """
    for thread in threading.enumerate():
        if is_pipe_reader(thread):
            # "0 0x2f 0x7f5c3c0..": number and arguments of a system call, here read; "running" outside of one. For a
            # thread that waits for the GIL the first argument is an address, not a descriptor.
            with contextlib.suppress(OSError, SourceUnavailable):
                fields = read_small(f"/proc/self/task/{thread.native_id}/syscall").split()
                if len(fields) < 2 or int(fields[1], 16) > _HIGHEST_DESCRIPTOR:
                    return False
    return True
