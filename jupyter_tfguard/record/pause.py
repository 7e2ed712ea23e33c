"""The pause between a write to fd 2 and the look at it: it makes one of many writes, and keeps out of the way of a death."""

from __future__ import annotations

import time

from .linux_files import WriteWatch
from .textfile_pair import TextFilePair

STEP_SECONDS = 0.0025
_QUIET_STEPS = 6
_LONGEST_STEPS = 20


class Pause:
    """Lasts until nobody has written for 6 steps, 20 steps at most.

    Args:
        pair: The files; the pause is over when they are short of room.
        watch: Says whether somebody goes on writing; where nothing does, the pause is one step.
        step: Seconds to sleep before each :meth:`is_over`.
        patient: False: one step, whoever writes.
    """

    def __init__(
        self,
        pair: TextFilePair,
        watch: WriteWatch | None,
        step: float = STEP_SECONDS,
        *,
        patient: bool = True,
    ) -> None:
        self.step = step
        self._pair = pair
        self._watch = watch
        self._patient = patient and watch is not None
        self._began = 0.0
        self._steps = self._quiet = 0

    def is_over(self, nudged: float) -> bool:
        """True when it is time to look.

        Args:
            nudged: Monotonic time when somebody last asked for a look; that may be just before the pause.

        Raises:
            OSError: The files are closed.
        """
        self._steps += 1
        if self._steps == 1:
            self._began = time.monotonic() - 2 * self.step
        written = self._watch is not None and self._watch.written_since()
        self._quiet = 0 if written else self._quiet + 1
        return (
            not self._patient
            or self._quiet >= _QUIET_STEPS
            or self._steps >= _LONGEST_STEPS
            or nudged >= self._began
            or self._pair.short_of_room(written and self._steps > 1)
        )
