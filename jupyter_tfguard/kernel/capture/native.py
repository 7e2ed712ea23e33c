"""Records the stderr tail, and the Python stacks at a fatal signal or during a hang."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ...config import TfGuard
from ...private_files import PrivateFolder
from ...record.late_stderr_helper import LateStderrHelper
from ...record.native_text import native_text_since, stderr_end
from ...record.recording import Recording
from ...record.stacks import HEADER_KEY
from ...record.stderr_tail import PARTS, StderrTail
from ...shield import part, shielded
from ..header import is_watched
from .client_stream import ClientStream
from .faults import FaultFiles
from .stacks import StacksOnRequest

_CELL_END_SECONDS = 0.5


class NativeParts:
    """The parts that write native text and stacks to the recording. Parts that fail are left out and reported.

    Args:
        settings: The options.
        problems: A sentence is added for each part that cannot start.
        on_problem: Called with a sentence when native text is no longer recorded.
        recording: Returns the recording; without one nothing is started.
        thread: Returns the native id of the thread that calls :meth:`tick`.
    """

    def __init__(
        self,
        settings: TfGuard,
        problems: list[str],
        on_problem: Callable[[str], None],
        recording: Callable[[], Recording | None],
        thread: Callable[[], int | None],
    ) -> None:
        self._keeps_text = settings.record_stderr
        self._problems = problems
        self._on_problem = on_problem
        self._recording = recording
        self._thread = thread
        self._folder: PrivateFolder | None = None
        self._faults: FaultFiles | None = None
        self._faulthandler_state = "off"
        self._tail: StderrTail | None = None
        self._helper: LateStderrHelper | None = None
        self._stacks: StacksOnRequest | None = None

    def start_faults(self) -> None:
        """Record the stack at fatal and terminating signals."""
        if (recording := self._recording()) is not None:
            self._folder = recording.folder
            self._faults = FaultFiles(recording.folder)
            self._faulthandler_state = self._faults.start()

    def start_tail(self) -> None:
        """Record native text. Without a watcher, a helper process forwards the last of it after the kernel's end."""
        recording = self._recording()
        if recording is None or not self._keeps_text:
            return
        tail = StderrTail(recording.folder, self._on_problem, ClientStream.found())
        tail.start()
        self._tail = tail
        if not is_watched() and (shared := tail.shared):
            with part("last native text of a crash", self._problems):
                helper = LateStderrHelper(recording.folder.path, shared, self._on_problem)
                helper.start()
                self._helper = helper

    def start_stacks(self) -> None:
        """Serve requests for stacks, and announce this in the header."""
        if (recording := self._recording()) is not None:
            stacks = StacksOnRequest(
                recording.folder, lambda fields: recording.write_header({HEADER_KEY: fields})
            )
            stacks.start(self._thread())
            self._stacks = stacks

    def state(self) -> dict[str, Any]:
        """Which parts are active, for the header."""
        shared = (self._tail and self._tail.shared) or {}
        return {
            "faulthandler": self._faulthandler_state,
            "stderr": self._tail is not None and self._tail.running,
            **{f"stderr_{name}": shared.get(name) for name in PARTS},
        }

    def place(self) -> int | None:
        """Bytes of native text so far; None while none is recorded."""
        return None if self._tail is None else self._tail.written()

    def text(self, since: int | None = None) -> str:
        """Native text from an offset on, or the stderr tail; empty if none is recorded."""
        if self._folder is None or self._tail is None:
            return ""
        return stderr_end(self._folder) if since is None else native_text_since(self._folder, since)

    def wait_forwarded(self, seconds: float) -> None:
        """Wait until the native text so far was forwarded, for at most `seconds`."""
        if self._tail is not None:
            self._tail.wait_forwarded(seconds)

    def cell_starts(self) -> None:
        """Called before each cell: the helper process must have been started."""
        if self._helper is not None:
            self._helper.begin()

    def cell_ends(self) -> None:
        """Called after each cell: its native text must be forwarded before ipykernel reports the end of the cell."""
        with contextlib.suppress(KeyboardInterrupt):  # Stop ends only this wait: the cell has ended
            self.wait_forwarded(_CELL_END_SECONDS)

    def tick(self) -> None:
        """Called with every sample: serve a request for stacks, if there is one."""
        if self._stacks is not None:
            self._stacks.tick()

    def stop_faults(self) -> None:
        """Undo :meth:`start_faults`, also in a forked child."""
        faults, self._faults = self._faults, None
        if faults is not None:
            faults.stop()

    def stop_tail(self) -> None:
        """Undo :meth:`start_tail`."""
        for ended in (self._tail, self._helper):
            if ended is not None:
                with shielded("unloading"):
                    ended.stop()
        self._tail = self._helper = None

    def stop_stacks(self) -> None:
        """Undo :meth:`start_stacks`, also in a forked child."""
        stacks, self._stacks = self._stacks, None
        if stacks is not None:
            stacks.stop()

    def leave_tail(self) -> None:
        """In a forked child: a killed worker must not look like a crashed kernel."""
        left = (self._tail, self._helper)
        self._tail = self._helper = None
        for inherited in left:
            if inherited is not None:
                with shielded("forked child"):
                    inherited.leave_child()
