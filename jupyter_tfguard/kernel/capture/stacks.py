"""Writes the Python stacks of all threads on request, so that a watcher can find out why the kernel hangs.

The watcher creates a file in the recording; the guard's sampling thread detects it, writes the stacks and removes it.
While native code holds the GIL that thread cannot run; the watcher then sends it a real-time signal, and faulthandler
writes at C level. The signal goes only to that thread, so no system call in user code is interrupted.

ipykernel's control channel is not used: after its reply the server would consider the kernel idle.
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

from ...collectors.process_activity import catches
from ...errors import FolderUnusable, SourceUnavailable
from ...private_files import PrivateFolder
from ...procfs import read_small
from ...record.recording import STACKS, STACKS_WANTED
from ...record.stacks import thread_name

_EVERY_SECONDS = 0.5
# Service threads of every kernel. User code runs in threads of some of their modules too.
_OUR_PACKAGES = ("ipykernel", "IPython")
_USERS_MODULES = ("ipykernel.subshell", "IPython.lib.backgroundjobs")
_OUR_NAMES = ("IOPub", "Control", "Shell channel")
_OUR_PREFIX = "tfguard-"
_PIPE_READER = "_watch_pipe_fd"  # ipykernel's threads that read fd 1 and 2
# libzmq's threads, which carry the messages, and the guard's.
_NATIVE_PREFIXES = (b"ZMQbg", b"tfguard-")


class StacksOnRequest:
    """Serves requests for stacks, from :meth:`start` to :meth:`stop`.

    Args:
        folder: The folder of the recording.
        publish: Called with the facts that a watcher needs, whenever they change.
    """

    def __init__(self, folder: PrivateFolder, publish: Callable[[dict[str, Any]], None]) -> None:
        self._folder = folder
        self._publish = publish
        self._file: int | None = None
        self._signal: int | None = None
        self._thread: int | None = None
        self._native_threads: set[int] = set()
        self._service_threads: set[int] | None = None
        self._next = 0.0

    def start(self, thread: int | None) -> None:
        """Create the file, and register an unused signal.

        Args:
            thread: Native id of the thread that calls :meth:`tick`.

        Raises:
            FolderUnusable: The file cannot be created safely.
            OSError: The system could not create the file.
        """
        self._file = self._folder.create(STACKS, append=True)
        if hasattr(faulthandler, "register") and (number := free_signal()) is not None:
            faulthandler.register(number, file=self._file, all_threads=True)
            self._signal = number
        self._thread, self._native_threads = thread, native_service_threads()
        self._update_threads()

    def _update_threads(self) -> None:
        # Some start later: ipykernel's parent poller, and a thread of a widget.
        found = service_threads() | self._native_threads
        if found == self._service_threads:
            return
        self._service_threads = found
        self._publish(
            {
                "signal": self._signal,
                "thread": self._thread,
                "main_thread": thread_name(threading.main_thread().ident or 0),
                "service_threads": sorted(found),
            }
        )

    def tick(self) -> None:
        """Check for a request and for new threads, at most twice a second."""
        now = time.monotonic()
        if self._file is None or now < self._next:
            return
        self._next = now + _EVERY_SECONDS
        self._update_threads()
        if self._folder.has(STACKS_WANTED):
            # On failure the request file stays, so the requester sees that there is no answer.
            with contextlib.suppress(OSError, FolderUnusable):
                os.ftruncate(self._file, 0)
                faulthandler.dump_traceback(self._file, all_threads=True)
                self._folder.remove(STACKS_WANTED)

    def stop(self) -> None:
        """Undo :meth:`start`. A handler that user code has set since stays."""
        if self._signal is not None:
            if signal.getsignal(self._signal) is signal.SIG_DFL:
                faulthandler.unregister(self._signal)
            self._signal = None
        if self._file is not None:
            os.close(self._file)
            self._file = None


def free_signal() -> int | None:
    """A real-time signal without a Python or native handler; None if there is none."""
    if not hasattr(signal, "SIGRTMAX"):
        return None
    # Highest first: other software usually takes the lowest ones.
    for number in range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1):
        if signal.getsignal(number) is signal.SIG_DFL and not catches(os.getpid(), number):
            return number
    return None


def service_threads() -> set[int]:
    """Native ids of the Python threads that belong to Jupyter or the guard, not to user code."""
    return {
        t.native_id for t in threading.enumerate() if _is_service(t) and t.native_id is not None
    }


def _is_service(thread: threading.Thread) -> bool:
    module = type(thread).__module__
    if module in _USERS_MODULES:
        return False
    if module.partition(".")[0] in _OUR_PACKAGES:
        return True
    name = thread.name
    return name in _OUR_NAMES or name.startswith(_OUR_PREFIX) or _PIPE_READER in name


def native_service_threads() -> set[int]:
    """Native ids of libzmq's threads (ten messages a second for our widget) and of the memory guard's sampler.

    Read before user code starts any of libzmq's.
    """
    found = set()
    with contextlib.suppress(OSError):
        for thread in map(int, os.listdir("/proc/self/task")):
            with contextlib.suppress(OSError, SourceUnavailable):  # it has ended
                if read_small(f"/proc/self/task/{thread}/comm").startswith(_NATIVE_PREFIXES):
                    found.add(thread)
    return found
