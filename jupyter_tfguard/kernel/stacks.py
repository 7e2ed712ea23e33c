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
from collections.abc import Callable
from typing import Any

from ..collectors.procfs import read_small
from ..collectors.standstill import catches
from ..errors import FolderUnusable, SourceUnavailable
from ..private_files import PrivateFolder
from ..record.recording import STACKS, STACKS_WANTED
from ..record.stacks import thread_name

_EVERY_SECONDS = 0.5
# Of every kernel; but the user's code runs in threads of some of their modules too.
_OUR_PACKAGES = ("ipykernel", "IPython")
_USERS_MODULES = ("ipykernel.subshell", "IPython.lib.backgroundjobs")
_OUR_NAMES = ("IOPub", "Control", "Shell channel")
_OUR_PREFIX = "tfguard-"
_PIPE_READER = "_watch_pipe_fd"
# What libzmq calls its threads, which carry the messages.
_CARRIERS = b"ZMQbg"


class StacksOnRequest:
    """Answers requests for stacks, from :meth:`start` to :meth:`stop`.

    Args:
        folder: Of the recording.
        tell: Called with what a watcher has to know, whenever it is another.
    """

    def __init__(self, folder: PrivateFolder, tell: Callable[[dict[str, Any]], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._file: int | None = None
        self._signal: int | None = None
        self._thread: int | None = None
        self._carriers: set[int] = set()
        self._service_threads: set[int] | None = None
        self._next = 0.0

    def start(self, thread: int | None) -> None:
        """Make the file, and take a signal that nobody uses.

        Args:
            thread: Native id of the thread that calls :meth:`tick`.

        Raises:
            FolderUnusable: The file cannot be made safely.
            OSError: The system refused it.
        """
        self._file = self._folder.create(STACKS, append=True)
        if hasattr(faulthandler, "register") and (number := free_signal()) is not None:
            faulthandler.register(number, file=self._file, all_threads=True)
            self._signal = number
        self._thread, self._carriers = thread, message_carriers()
        self._look_at_threads()

    def _look_at_threads(self) -> None:
        # Some begin later: ipykernel's look for its parent, a widget's.
        found = service_threads() | self._carriers
        if found == self._service_threads:
            return
        self._service_threads = found
        self._tell(
            {
                "signal": self._signal,
                "thread": self._thread,
                "main_thread": thread_name(threading.main_thread().ident or 0),
                "service_threads": sorted(found),
            }
        )

    def tick(self) -> None:
        """Look for a request, and for new threads, twice a second at most."""
        now = time.monotonic()
        if self._file is None or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        self._look_at_threads()
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


def free_signal() -> int | None:
    """A real-time signal without a handler, Python's or native; None where there is none."""
    if not hasattr(signal, "SIGRTMAX"):
        return None
    # From above: the lowest ones are what others take first.
    for number in range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1):
        if signal.getsignal(number) is signal.SIG_DFL and not catches(os.getpid(), number):
            return number
    return None


def service_threads() -> set[int]:
    """Native ids of the threads of Python that belong to the machinery, not to the user's code."""
    return {
        t.native_id for t in threading.enumerate() if _is_service(t) and t.native_id is not None
    }


def _is_service(thread: threading.Thread) -> bool:
    module = type(thread).__module__
    if module in _USERS_MODULES:
        return False
    if module.partition(".")[0] in _OUR_PACKAGES:
        return True
    return (
        thread.name in _OUR_NAMES or thread.name.startswith(_OUR_PREFIX) or is_pipe_reader(thread)
    )


def is_pipe_reader(thread: threading.Thread) -> bool:
    """True for the threads of ipykernel that read fd 1 and 2."""
    return _PIPE_READER in thread.name


def message_carriers() -> set[int]:
    """Native ids of libzmq's threads, ten messages a second for a widget of ours; asked before the user's code begins some."""
    found = set()
    with contextlib.suppress(OSError):
        for thread in map(int, os.listdir("/proc/self/task")):
            with contextlib.suppress(OSError, SourceUnavailable):  # it has ended
                if read_small(f"/proc/self/task/{thread}/comm").startswith(_CARRIERS):
                    found.add(thread)
    return found
