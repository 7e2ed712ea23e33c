"""What is kept of native code: its last words, and the Python stacks of a fatal signal or of a standstill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..record.folders import PrivateFolder
from ..record.native_since import Place, native_text_since
from ..record.native_text import last_words
from ..record.recording import Recording
from ..record.spool import StderrSpool
from ..record.stacks import HEADER_KEY
from ..shield import shielded
from .faults import FaultFiles
from .parts import part
from .stacks import StacksOnRequest


class NativeParts:
    """Begun with the recording, whose folder they write to. What fails is left out and told.

    Args:
        problems: Gets a sentence for each part that cannot begin.
        on_problem: Told when native text is no longer kept.
        on_dropped: Told how many bytes of native text were not passed on so far.
    """

    def __init__(
        self,
        problems: list[str],
        on_problem: Callable[[str], None],
        on_dropped: Callable[[int], None],
    ) -> None:
        self._problems = problems
        self._on_problem = on_problem
        self._on_dropped = on_dropped
        self._folder: PrivateFolder | None = None
        self._faults: FaultFiles | None = None
        self._faulthandler_state = "off"
        self._spool: StderrSpool | None = None
        self._stacks: StacksOnRequest | None = None

    def start(self, folder: PrivateFolder, *, keep_text: bool) -> None:
        """Begin to keep stacks of fatal signals, and native text if that is wanted."""
        self._folder = folder
        with part("stacks of fatal signals", self._problems):
            self._faults = FaultFiles(folder)
            self._faulthandler_state = self._faults.start()
        if keep_text:
            with part("native text", self._problems):
                spool = StderrSpool(folder, self._on_problem, self._on_dropped)
                spool.start()
                self._spool = spool

    def offer_stacks(self, recording: Recording, thread: int | None) -> None:
        """Answer whoever wants stacks, and say so in the header.

        Args:
            thread: Native id of the thread that calls :meth:`tick`.
        """
        with part("stacks of a kernel that stands still", self._problems):
            stacks = StacksOnRequest(
                recording.folder, lambda told: recording.write_header({HEADER_KEY: told})
            )
            stacks.start(thread)
            self._stacks = stacks

    def state(self) -> dict[str, Any]:
        """What of it is in force, for the header."""
        return {
            "faulthandler": self._faulthandler_state,
            "stderr": self._spool is not None and self._spool.running,
        }

    def place(self) -> Place | None:
        """Where the next native text goes; None while none is kept."""
        return None if self._spool is None else self._spool.place()

    def text(self, since: Place | None = None) -> str:
        """Native text since a place, or all that is kept; empty where none is."""
        if self._folder is None or self._spool is None:
            return ""
        return last_words(self._folder) if since is None else native_text_since(self._folder, since)

    def wait_read(self, seconds: float) -> bool:
        """Wait so many seconds at most until the page has the native text so far; False when it has not."""
        return self._spool is None or self._spool.wait_read(seconds)

    def cell_starts(self) -> None:
        """Called before each cell."""
        if self._stacks is not None:
            self._stacks.cell_starts()

    def cell_ends(self) -> None:
        """Called after each cell: the page gets its native text now."""
        if self._spool is not None:
            self._spool.nudge()

    def tick(self) -> None:
        """Called with every sample: stacks may be wanted."""
        if self._stacks is not None:
            self._stacks.tick()

    def stop(self) -> None:
        """End every part; one that fails does not keep the others."""
        for ended in (self._spool, self._faults, self._stacks):
            if ended is not None:
                with shielded("unloading"):
                    ended.stop()
        self._spool = self._faults = self._stacks = None

    def leave_child(self) -> None:
        """In a forked child: undo what reaches into it, and give its copies of the descriptors back."""
        parts = (self._spool, self._faults, self._stacks)
        self._spool = self._faults = self._stacks = None
        for left in parts:
            if left is not None:
                with shielded("forked child"):
                    left.leave_child()
