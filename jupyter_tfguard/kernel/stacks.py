"""Python stacks of all threads, for whoever watches this kernel and wants to know why it stands still.

The watcher puts a file into the recording; the guard's own thread sees it, writes the stacks and removes it. Where native
code holds the GIL that thread cannot: then the watcher sends it a real-time signal, and faulthandler writes at C level.
The signal goes to that one thread, so that no system call of the user's code is interrupted.

No message of ipykernel's control channel is used: the server would take the kernel for idle after its answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
import time
from typing import Any

from ..collectors.standstill import catches
from ..errors import FolderUnusable
from ..record.folders import PrivateFolder
from ..record.recording import STACKS, STACKS_WANTED
from ..record.stacks import thread_name

_EVERY_SECONDS = 0.5
# Of ipykernel and IPython, in every kernel; they run whether the user's code does or not.
_OUR_MODULES = ("ipykernel", "IPython")
_OUR_NAMES = ("tfguard-", "IOPub", "Control", "Shell channel")
_PIPE_READER = "_watch_pipe_fd"


class StacksOnRequest:
    """Answers requests for stacks, from :meth:`start` to :meth:`stop`.

    Args:
        folder: Of the recording.
    """

    def __init__(self, folder: PrivateFolder) -> None:
        self._folder = folder
        self._file: int | None = None
        self._signal: int | None = None
        self._next = 0.0

    def start(self) -> None:
        """Make the file, and take a signal that nobody uses.

        Raises:
            FolderUnusable: The file cannot be made safely.
            OSError: The system refused it.
        """
        self._file = self._folder.create(STACKS, append=True)
        if hasattr(faulthandler, "register") and (number := _free_signal()) is not None:
            faulthandler.register(number, file=self._file, all_threads=True)
            self._signal = number

    def header(self, thread: int | None) -> dict[str, Any]:
        """What a watcher has to know.

        Args:
            thread: Native id of the thread that calls :meth:`tick`.
        """
        return {
            "signal": self._signal,
            "thread": thread,
            "main_thread": thread_name(threading.main_thread().ident or 0),
            "service_threads": _service_threads(),
        }

    def tick(self) -> None:
        """Look for a request, twice a second at most, and answer it."""
        now = time.monotonic()
        if self._file is None or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        if self._folder.has(STACKS_WANTED):
            # Whoever asked sees that there is no answer.
            with contextlib.suppress(OSError, FolderUnusable):
                os.ftruncate(self._file, 0)
                faulthandler.dump_traceback(self._file, all_threads=True)
                self._folder.remove(STACKS_WANTED)

    def stop(self) -> None:
        """Undo it; a handler that user code put in the place of ours stays."""
        if self._signal is not None:
            if signal.getsignal(self._signal) is signal.SIG_DFL:
                faulthandler.unregister(self._signal)
            self._signal = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def leave_child(self) -> None:
        """In a forked child: the recording is its parent's."""
        with contextlib.suppress(OSError, ValueError, FolderUnusable):
            self.stop()


def _free_signal() -> int | None:
    """A real-time signal without a handler, Python's or native; None where there is none."""
    if not hasattr(signal, "SIGRTMAX"):
        return None
    # From above: the lowest ones are what others take first.
    for number in range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1):
        if signal.getsignal(number) is signal.SIG_DFL and not catches(os.getpid(), number):
            return number
    return None


def _service_threads() -> list[int]:
    """Native ids of the threads that belong to the kernel's own machinery, not to the user's code."""
    found = []
    for thread in threading.enumerate():
        module = type(thread).__module__.partition(".")[0]
        ours = module in _OUR_MODULES or thread.name.startswith(_OUR_NAMES)
        if (ours or _PIPE_READER in thread.name) and thread.native_id is not None:
            found.append(thread.native_id)
    return found
