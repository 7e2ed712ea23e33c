"""Samples the kernel from inside, for kernels that no watcher samples from outside.

A thread in the kernel cannot sample while native code holds the GIL, so a watcher's samples are better if there is one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...metrics import Sample
from ...sampler import Sampler
from ...shield import note_problem
from ...threads import background_thread

_STOP_SECONDS = 2.0
_FIRST_SECONDS = 0.05


class Pulse:
    """A thread that samples at one rate while a cell runs, and at a lower one otherwise.

    Args:
        sampler: Takes the samples; closed by :meth:`stop`.
        busy_hertz, idle_hertz: Samples per second.
        on_sample: Called with each sample, in the thread.
    """

    def __init__(
        self,
        sampler: Sampler,
        busy_hertz: float,
        idle_hertz: float,
        on_sample: Callable[[Sample], None],
    ) -> None:
        self._sampler = sampler
        self._busy_seconds = 1.0 / busy_hertz
        self._idle_seconds = 1.0 / idle_hertz
        self._on_sample = on_sample
        self._busy = False
        self._stopping = False
        self._change = threading.Event()
        self._thread = background_thread(self._run, "tfguard-pulse")
        self.latest: Sample | None = None

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    @property
    def thread_id(self) -> int | None:
        """Native id of the thread; None before the start."""
        return self._thread.native_id

    def set_busy(self, busy: bool) -> None:
        """Set whether a cell is running."""
        self._busy = busy
        if busy:
            self._change.set()

    def stop(self) -> None:
        """Stop sampling."""
        self._stopping = True
        self._change.set()
        self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._sampler.close()

    def _run(self) -> None:
        # The first sample takes a few milliseconds, so it must not delay the kernel's start.
        self._change.wait(_FIRST_SECONDS)
        while not self._stopping:
            try:
                self.latest = self._sampler.tick()
                self._on_sample(self.latest)
            except Exception as error:
                note_problem("sampling in the kernel", error)
                return
            self._sleep(time.monotonic())

    def _sleep(self, sampled: float) -> None:
        """Sleep until the next sample is due. The start of a cell shortens the wait, but never beyond the busy rate."""
        while not self._stopping:
            pause = self._busy_seconds if self._busy else self._idle_seconds
            left = sampled + pause - time.monotonic()
            if left <= 0:
                return
            if self._change.wait(left):
                self._change.clear()
