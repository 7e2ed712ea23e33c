"""Separates memory that a fit keeps from step to step from the memory that each of its steps needs."""

from __future__ import annotations

import time

# The first steps trace the model, fill TensorFlow's pool and start threads.
_FIRST_STEP = 4
# A window is long enough to see memory between two steps.
_WINDOW_SECONDS = 0.4
_WINDOW_STEPS = 2
_WINDOW_SAMPLES = 3


class FitFloor:
    """The lowest memory in short windows of one run: in the first one after its first steps, and in the newest."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._newest: float | None = None
        self._began = 0.0
        self._from_step = 0
        self._samples = 0
        self._lowest = 0.0

    def sampled(self, size: float, steps: int) -> None:
        """Take a sample.

        Args:
            size: Memory in use, bytes.
            steps: Steps of all epochs that have begun.
        """
        if steps < _FIRST_STEP:
            return
        now = time.monotonic()
        if not self._samples:
            self._began, self._from_step, self._lowest = now, steps, size
        self._samples += 1
        self._lowest = min(self._lowest, size)
        if (
            self._samples >= _WINDOW_SAMPLES
            and now - self._began >= _WINDOW_SECONDS
            and steps - self._from_step >= _WINDOW_STEPS
        ):
            if self._first is None:
                self._first = self._lowest
            self._newest, self._samples = self._lowest, 0

    @property
    def rise_bytes(self) -> float:
        """By how much the lowest memory has risen; 0 if there are not two windows yet."""
        if self._first is None or self._newest is None:
            return 0.0
        return self._newest - self._first
