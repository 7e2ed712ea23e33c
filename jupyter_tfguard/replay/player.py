"""Plays a tape: a witness that sees now what was seen then, at the pace of then, or quicker."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from ..diagnosis.typed import dict_of, number_of, text_of, whole_of
from ..limits import Limit
from ..metrics import Sample
from ..record.facts import Hang
from ..record.identity import ProcessIdentity
from ..watch.history import COLUMNS
from ..watch.witness import Kernel, Witness
from .live import LivePlayer
from .tape import RSS, Tape, Values

_UNKNOWN = float("nan")
_LONG_AGO_SECONDS = 3600.0


class RecordedWitness(Witness):
    """What was seen of the kernel; nothing is looked at now.

    Args:
        tape: The recording.
        kernel: The kernel that stands for it.
        now: Monotonic seconds.
    """

    def __init__(self, tape: Tape, kernel: Kernel, now: float) -> None:
        pid = whole_of(dict_of(tape.bundle.get("identity")).get("pid"))
        super().__init__(ProcessIdentity(pid or 0, 0), kernel, now - _LONG_AGO_SECONDS)
        self.is_busy = False
        self._limit = tape.limit
        self._newest: Sample | None = None
        self._number = 0

    @property
    def latest(self) -> Sample | None:
        """The newest sample."""
        return self._newest

    def binding_limit(self) -> Limit | None:
        """The limit that the report names."""
        return self._limit

    def see(self, values: Values, moment: float, when: float) -> None:
        """Take a sample, at a monotonic moment that is `when` in Unix seconds."""
        self._number += 1
        self._newest = Sample(self._number, moment, when, values)
        if self.is_busy:
            self._forecaster.take(moment, values, self._limit)
        if self.history.add(moment, [values.get(name, _UNKNOWN) for name in COLUMNS]):
            self.history.add_to_chart(moment, values[RSS], self.limit()[0])
        self.peak_bytes = max(self.peak_bytes or 0, round(values[RSS]))


@dataclass
class _Clock:
    """Where the tape is. All but `speed` in seconds; `position` as it was recorded."""

    speed: float
    moment: float
    position: float

    def advance(self, now: float) -> float:
        """The position at a monotonic moment."""
        self.position += (now - self.moment) * self.speed
        self.moment = now
        return self.position

    def moment_of(self, recorded: float) -> float:
        """The monotonic moment at which something recorded happens."""
        return self.moment - (self.position - recorded) / self.speed


class Player:
    """One run through a tape.

    Args:
        tape: The recording.
        kernel: The kernel that stands for it.
        speed: 2 = twice as quick as it was.
        before_seconds: How long before the death to begin.
        now: Monotonic seconds.
    """

    def __init__(
        self, tape: Tape, kernel: Kernel, speed: float, before_seconds: float, now: float
    ) -> None:
        self.tape = tape
        self.witness = RecordedWitness(tape, kernel, now)
        begin = max(tape.first, tape.end - before_seconds)
        self._clock = _Clock(speed, now, begin)
        self._live = LivePlayer(tape)
        samples = [(when, False, values) for when, values in tape.samples]
        events = [(float(event["t"]), True, event) for event in tape.events]
        self._ahead = deque(sorted([*samples, *events], key=lambda happened: happened[0]))
        self._progress = tape.progress

    @property
    def runs_cell(self) -> bool:
        """True while a recorded cell runs."""
        return self._live.runs_cell

    @property
    def position(self) -> float:
        """The recorded moment that is played, Unix seconds."""
        return self._clock.position

    @property
    def is_over(self) -> bool:
        """True once the death is reached."""
        return self._clock.position >= self.tape.end

    def hold(self, now: float) -> None:
        """Time passes, and the tape stands still. `now`: monotonic seconds."""
        self._clock.moment = now

    def advance(self, now: float) -> None:
        """Let happen what happened until now. `now`: monotonic seconds."""
        position = self._clock.advance(now)
        wall = time.time() - time.monotonic()
        while self._ahead and self._ahead[0][0] <= position:
            when, is_event, happened = self._ahead.popleft()
            moment = self._clock.moment_of(when)
            if is_event:
                self._live.take(happened, moment + wall, moment)
                self.witness.is_busy = self._live.runs_cell
            else:
                self.witness.see(happened, moment, moment + wall)
        if self._progress is not None and self._progress[0] <= position:
            when, progress = self._progress
            self._live.take_progress(progress, self._clock.moment_of(when) + wall - when)
            self._progress = None
        self._look_at_hang(position, wall)
        newest = self.witness.latest
        rss = None if newest is None else round(newest.values[RSS])
        self.witness.live = self._live.live((rss, self.witness.peak_bytes))

    def _look_at_hang(self, position: float, wall: float) -> None:
        told = dict_of(dict_of(self.tape.bundle.get("server")).get("hang"))
        since, noticed = number_of(told.get("since")), number_of(told.get("noticed"))
        if since is not None and noticed is not None and noticed <= position:
            began = self._clock.moment_of(since) + wall
            self.witness.hang = _hang(told, began, began + noticed - since)


def _hang(told: dict[str, Any], since: float, noticed: float) -> Hang:
    wait = text_of(told.get("wait")) or "other"
    return Hang(since=since, noticed=noticed, wait=wait, in_fit=told.get("in_fit") is True)
