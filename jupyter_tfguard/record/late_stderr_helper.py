"""Starts and dismisses the helper process that forwards the end of a kernel's stderr after its crash (``late_stderr.py``).

For kernels without a watcher: nbclient, papermill, consoles. The helper is in a session of its own, so that Ctrl-C and the end
of a terminal do not end it first, and it is no child of the kernel, because user code may wait for its children or count them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..threads import background_thread
from . import late_stderr
from .own_descriptors import OwnDescriptors

# The shell ends at once, so the program is a child of process 1, or of a process that adopts orphans.
_COMMAND = ("/bin/sh", "-c", '"$@" &', "sh")
_STOP_SECONDS = 2.0
_LATER_SECONDS = 2.0  # the kernel has started by then
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH")


class LateStderrHelper:
    """The helper process of this kernel, from :meth:`start` to :meth:`stop`.

    Args:
        folder: The recording.
        shared: As of :attr:`~.stderr_tail.StderrTail.shared`.
        on_problem: Called with a message if it cannot be started.
    """

    def __init__(
        self, folder: Path, shared: dict[str, Any], on_problem: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._shared = shared
        self._on_problem = on_problem
        self._pid = os.getpid()
        self._own = OwnDescriptors()
        self._lifeline = -1
        self._passed: tuple[int, ...] = ()
        self._lock = threading.Lock()
        self._begun = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it later, in a thread, so that the start of the kernel does not wait. Does nothing if the system has none.

        Raises:
            OSError: No descriptor is free, or a sandbox forbids it.
        """
        if not hasattr(os, "pidfd_open") or self._shared["position"]["descriptor"] < 0:
            return
        kernel = self._own.add(os.pidfd_open(os.getpid()))
        lifeline, target = os.pipe()
        self._own.add(lifeline)
        self._lifeline = self._own.add(target)
        parts = [self._shared[name]["descriptor"] for name in ("pipe", "position", "original")]
        self._passed = (*parts, kernel, lifeline)
        self._thread = background_thread(self._begin_later, "tfguard-helper")
        try:
            self._thread.start()
        except RuntimeError as bad:
            self._own.close_all()
            self._passed = ()
            raise OSError(errno.EAGAIN, str(bad)) from bad

    def begin(self) -> None:
        """Start it now, unless it was started: a cell may end the kernel at once."""
        with self._lock:
            if self._passed and not self._begun.is_set():
                program = (sys.executable, "-I", "-S", late_stderr.__file__)
                folder = -1
                try:
                    # Locked here, so that a reader waits also if the kernel ends before the helper has started.
                    folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
                    late_stderr.try_lock(folder)
                    passed = (folder, *self._passed)
                    self._process = subprocess.Popen(
                        [*_COMMAND, *program, *map(str, passed)],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        pass_fds=passed,
                        start_new_session=True,
                        cwd="/",
                        env={n: os.environ[n] for n in _KEPT_VARIABLES if n in os.environ},
                    )
                except OSError as bad:
                    self._problem(bad.strerror)
                finally:
                    if folder >= 0:
                        os.close(folder)
                self._begun.set()

    def _begin_later(self) -> None:
        self._begun.wait(_LATER_SECONDS)
        self.begin()
        if self._process is not None and self._process.wait():
            self._problem("the shell could not start it")
        for descriptor in self._passed[-2:]:
            self._own.close(descriptor)

    def _problem(self, reason: str | None) -> None:
        self._on_problem(
            f"Could not start the process that forwards the last native text of a crash: {reason}."
        )

    def stop(self) -> None:
        """Dismiss it."""
        if self._thread is not None and os.getpid() == self._pid:
            self._begun.set()
            self._thread.join(_STOP_SECONDS)
        if self._lifeline >= 0 and os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                self._own.check(self._lifeline)
                os.write(self._lifeline, late_stderr.DISMISS)
        self._own.close_all()

    def leave_child(self) -> None:
        """In a forked child: close its copies of the descriptors."""
        self._own.close_all()
