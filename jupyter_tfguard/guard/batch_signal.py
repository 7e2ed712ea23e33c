"""Saves a checkpoint when a batch system ends a job with SIGTERM while a fit runs; then the signal does what it would have done.

Only in a job of a batch system, and only while a fit runs. At other times the signal is not ours: its disposition is restored to
the last bit, with the C-level handler that faulthandler may have registered.

How it works: Python's own C-level handler writes the number of the signal into a pipe, even while the main thread is inside
TensorFlow. A thread of ours waits for it. The main thread pauses between two lines of Python, so that nobody trains while the
thread saves. A step that takes too long is not waited for: then variables may differ by one step.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from ..shield import note_problem, shielded

SAVE_SECONDS = 10.0
_watching: BatchSignal | None = None
_fork_hooked = False
_STEP_SECONDS = 3.0
# Larger than struct sigaction of any C library.
_SIGACTION_BYTES = 512
# Set in every job of these systems.
_VARIABLES = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_JOB_ID": "Flux",
    "COBALT_JOBID": "Cobalt",
    "_CONDOR_SLOT": "HTCondor",
    "OAR_JOB_ID": "OAR",
}
_GRID_ENGINE = ("JOB_ID", "SGE_TASK_ID")


def batch_system(environment: Mapping[str, str]) -> str | None:
    """Name of the batch system that this process runs under; None for none that is known."""
    for variable, name in _VARIABLES.items():
        if environment.get(variable):
            return name
    return "Grid Engine" if all(environment.get(v) for v in _GRID_ENGINE) else None


class BatchSignal:
    """Watches for SIGTERM from :meth:`arm` to :meth:`disarm`. Both are called by the main thread.

    Args:
        save: Saves the model within so many seconds; called once, in another thread.
        save_seconds: At most, from the signal on.
        step_seconds: How long the main thread may take to pause.
    """

    def __init__(
        self,
        save: Callable[[float], Any],
        *,
        save_seconds: float = SAVE_SECONDS,
        step_seconds: float = _STEP_SECONDS,
    ) -> None:
        self._save = save
        self._save_seconds, self._step_seconds = save_seconds, step_seconds
        self._paused, self._done = threading.Event(), threading.Event()
        self._before: Any = None
        self._action: _Action | None = None
        self._pipe: tuple[int, int] | None = None
        self._wakeup_before = -1
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def arm(self) -> bool:
        """Begin to watch. False, and nothing is changed, when the signal is ignored, or this is not the main thread."""
        if threading.current_thread() is not threading.main_thread() or self._pipe is not None:
            return False
        before = signal.getsignal(signal.SIGTERM)
        if before is signal.SIG_IGN:  # nohup
            return False
        self._before, self._action = before, _Action.now()
        self._paused.clear()
        self._done.clear()
        self._pipe = reader, writer = os.pipe()
        os.set_blocking(writer, False)
        self._thread = threading.Thread(
            target=self._wait, args=(reader,), name="tfguard-sigterm", daemon=True
        )
        self._thread.start()
        _watch_forks(self)
        self._wakeup_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._pause)
        return True

    def disarm(self) -> None:
        """Watch no more. A handler that was set meanwhile stays."""
        if self._pipe is None:
            return
        _watch_forks(None)
        if signal.getsignal(signal.SIGTERM) == self._pause:
            self._restore()
        reader, writer = self._pipe
        current = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(self._wakeup_before if current == writer else current)
        self._pipe = None
        os.close(writer)  # ends the thread
        if self._thread is not None:
            self._thread.join()
        os.close(reader)

    def leave_child(self) -> None:
        """In a forked child, which has no thread of ours: its SIGTERM must not reach the parent through the pipe."""
        if signal.getsignal(signal.SIGTERM) == self._pause:
            self._restore()
        with contextlib.suppress(ValueError):  # forked by another thread than the main one
            signal.set_wakeup_fd(self._wakeup_before)
        for descriptor in self._pipe or ():
            os.close(descriptor)
        self._pipe = None

    # --- in the main thread

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """The handler: wait until the model is saved, then let the signal do what it does without us."""
        if os.getpid() == self._pid:
            self._paused.set()
            self._done.wait(self._save_seconds + self._step_seconds)
        if signal.getsignal(signal.SIGTERM) == self._pause:
            self._restore()
        os.kill(os.getpid(), number)

    def _restore(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if self._before is None else self._before)
        if self._action is not None:
            self._action.restore()

    # --- in a thread of our own

    def _wait(self, reader: int) -> None:
        while numbers := os.read(reader, 64):
            self._forward(numbers)
            if signal.SIGTERM in numbers:
                self._save_and_end()
                return

    def _forward(self, numbers: bytes) -> None:
        """To the event loop that would have been woken."""
        if self._wakeup_before >= 0:
            with contextlib.suppress(OSError):
                os.write(self._wakeup_before, numbers)

    def _save_and_end(self) -> None:
        deadline = time.monotonic() + self._save_seconds
        self._paused.wait(self._step_seconds)
        try:
            with shielded("checkpoint at SIGTERM"):
                self._save(deadline - time.monotonic())
        except BaseException as error:
            note_problem("checkpoint at SIGTERM", error)
        self._done.set()
        if self._paused.is_set():
            return  # the main thread goes on
        if callable(self._before) or self._action is None:
            return  # Python code: it runs when the main thread comes back from its step
        self._action.restore()
        os.kill(os.getpid(), signal.SIGTERM)


def _watch_forks(watching: BatchSignal | None) -> None:
    global _watching, _fork_hooked
    _watching = watching
    if not _fork_hooked and hasattr(os, "register_at_fork"):
        _fork_hooked = True  # cannot be undone
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child
        )


# A child that gets SIGTERM before it has left would write into the pipe of its parent: until then the signal waits.
_masks = threading.local()


def _before_fork() -> None:
    if _watching is not None:
        _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _after_fork() -> None:
    if (before := _masks.__dict__.pop("before", None)) is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_child() -> None:
    try:
        if _watching is not None:
            _watching.leave_child()
    finally:
        _after_fork()


class _Action:
    """What the system does at SIGTERM in this process, as the C library keeps it: Python does not know of C-level handlers."""

    def __init__(self, library: Any, kept: Any) -> None:
        self._library, self._kept = library, kept

    @classmethod
    def now(cls) -> _Action | None:
        """As it is; None where the C library cannot be called."""
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None, use_errno=True)
            kept = ctypes.create_string_buffer(_SIGACTION_BYTES)
            if library.sigaction(int(signal.SIGTERM), None, kept) == 0:
                return cls(library, kept)
        return None

    def restore(self) -> None:
        """As it was."""
        self._library.sigaction(int(signal.SIGTERM), self._kept, None)
