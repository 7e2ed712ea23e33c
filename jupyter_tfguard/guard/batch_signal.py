"""Saves a checkpoint when a batch system ends a job with SIGTERM during a fit; the signal then has its usual effect.

Active only in a job of a batch system, and only while a fit runs. At other times the disposition of the signal is
restored exactly, including a C-level handler that faulthandler may have registered.

How it works: Python's C-level handler writes the signal number into a pipe, even while the main thread is inside
TensorFlow. A separate thread reads the pipe. The main thread pauses in its Python-level handler, so no training happens
while the thread saves. If the current step takes too long, the thread saves anyway, and variables may differ by one
step.
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
from ..threads import background_thread

SAVE_SECONDS = 10.0
_watching: BatchSignal | None = None
_fork_hooked = False
_STEP_SECONDS = 3.0
# Larger than struct sigaction in any C library.
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
    """Name of the batch system that runs this process; None if no known one does."""
    for variable, name in _VARIABLES.items():
        if environment.get(variable):
            return name
    return "Grid Engine" if all(environment.get(v) for v in _GRID_ENGINE) else None


class BatchSignal:
    """Watches for SIGTERM from :meth:`arm` to :meth:`disarm`. Both are called by the main thread.

    Args:
        save: Saves the model within the given number of seconds; called once, in another thread.
        save_seconds: Time limit for the save, from the signal on.
        step_seconds: Time limit for the main thread to pause.
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
        """Start watching. Returns False and changes nothing if the signal is ignored or this is not the main thread."""
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
        self._thread = background_thread(lambda: self._wait(reader), "tfguard-sigterm")
        self._thread.start()
        _watch_forks(self)
        self._wakeup_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._pause)
        return True

    def disarm(self) -> None:
        """Stop watching. A handler that user code has set since stays."""
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
        """In a forked child, which has no watching thread: its SIGTERM must not reach the parent through the pipe."""
        if signal.getsignal(signal.SIGTERM) == self._pause:
            self._restore()
        with contextlib.suppress(ValueError):  # forked by a thread other than the main thread
            signal.set_wakeup_fd(self._wakeup_before)
        for descriptor in self._pipe or ():
            os.close(descriptor)
        self._pipe = None

    # --- in the main thread

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """The handler: wait until the model is saved, then resend the signal with its original handler."""
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

    # --- in the watching thread

    def _wait(self, reader: int) -> None:
        while numbers := os.read(reader, 64):
            self._forward(numbers)
            if signal.SIGTERM in numbers:
                self._save_and_end()
                return

    def _forward(self, numbers: bytes) -> None:
        """Pass the signals on to the event loop that used the wakeup descriptor before."""
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
            return  # the main thread resends the signal
        if callable(self._before) or self._action is None:
            return  # a Python handler: it runs when the main thread returns from its step
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


# A child that gets SIGTERM before leave_child() would write into its parent's pipe, so the signal is blocked until
# then.
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
    """The C-level disposition of SIGTERM in this process, which Python cannot read."""

    def __init__(self, library: Any, kept: Any) -> None:
        self._library, self._kept = library, kept

    @classmethod
    def now(cls) -> _Action | None:
        """The current disposition; None if the C library cannot be called."""
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None, use_errno=True)
            kept = ctypes.create_string_buffer(_SIGACTION_BYTES)
            if library.sigaction(int(signal.SIGTERM), None, kept) == 0:
                return cls(library, kept)
        return None

    def restore(self) -> None:
        """Restore this disposition."""
        self._library.sigaction(int(signal.SIGTERM), self._kept, None)
