"""Starts and dismisses the helper process that forwards a kernel's last words after its end (``last_words.py``).

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
from . import last_words
from .own_descriptors import OwnDescriptors

# The shell ends at once, so the program is a child of process 1, or of a process that adopts orphans.
_COMMAND = ("/bin/sh", "-c", '"$@" &', "sh")
_STOP_SECONDS = 2.0
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH")


class LastWordsHelper:
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
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it in a thread; nothing waits for it. Does nothing where the system has no such processes.

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
        descriptors = (*parts, kernel, lifeline)

        def start() -> None:
            try:
                self._run(descriptors)
            except (OSError, subprocess.CalledProcessError) as bad:
                reason = (
                    bad.strerror if isinstance(bad, OSError) else "the shell could not start it"
                )
                self._on_problem(
                    f"Could not start the process that forwards the last native text of a crash: {reason}."
                )
            self._own.close(kernel)
            self._own.close(lifeline)

        self._thread = background_thread(start, "tfguard-helper")
        try:
            self._thread.start()
        except RuntimeError as bad:
            self._own.close_all()
            raise OSError(errno.EAGAIN, str(bad)) from bad

    def _run(self, descriptors: tuple[int, ...]) -> None:
        program = (sys.executable, "-I", "-S", last_words.__file__, str(self._folder))
        subprocess.run(
            [*_COMMAND, *program, *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,
            cwd="/",
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            check=True,
        )

    def stop(self) -> None:
        """Dismiss it."""
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
        if self._lifeline >= 0 and os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                self._own.check(self._lifeline)
                os.write(self._lifeline, last_words.DISMISS)
        self._own.close_all()

    def leave_child(self) -> None:
        """In a forked child: close its copies of the descriptors."""
        self._own.close_all()
