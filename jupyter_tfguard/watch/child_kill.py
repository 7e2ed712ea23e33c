"""Notices that the OOM killer took a child of a kernel that goes on living.

Signs: the OOM kill counter of the kernel's own group rose, and a known child is gone. The taking down of a big child
lasts a second or more, and a kernel that is itself the victim looks alive for a moment; so both are given time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..record.facts import Counters
from .process_handle import is_running

_WAIT_SECONDS = 4.0
# A pool starts a new worker for each one that was killed, without end: one report a minute is enough.
_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class ChildKill:
    """One kill.

    Attributes:
        before: Counters before the rise. after: counters after it.
        ended: Children that are gone; several when more than one vanished in the same second.
        time: Unix seconds of the look that showed the rise.
    """

    before: Counters
    after: Counters
    ended: tuple[int, ...]
    time: float


class ChildKillDetector:
    """Compares one look with the next, about once a second."""

    def __init__(self) -> None:
        self._previous: Counters | None = None
        self._rise: tuple[Counters, Counters, frozenset[int]] | None = None
        self._found: ChildKill | None = None
        self._taken = -math.inf

    def look(self, now: Counters, children: tuple[int, ...]) -> None:
        """Take in the counters of now and the children known from the look before."""
        previous, self._previous = self._previous, now
        if previous is now:  # many kernels share one reading
            return
        if previous is not None and self._rise is None and _rose(previous, now):
            self._rise = (previous, now, frozenset(children))
        if self._rise is None or self._found is not None:
            return
        before, after, known = self._rise
        ended = tuple(sorted(child for child in known if not is_running(child)))
        if ended:
            self._found = ChildKill(before, after, ended, after.time)
            self._rise = None
        elif now.time - after.time > _WAIT_SECONDS:
            self._rise = None

    def take(self, now: float) -> ChildKill | None:
        """The kill that was found at least a second ago, once, and at most one a minute; None otherwise."""
        found = self._found
        if found is None or now - found.time < 1.0:
            return None
        self._found = None
        if 0 <= now - self._taken < _PAUSE_SECONDS:
            return None
        self._taken = now
        return found


def _rose(previous: Counters, now: Counters) -> bool:
    if not previous.groups or not now.groups:
        return False
    # The own group comes first. A kernel that was moved counts in another group now.
    old, new = previous.groups[0], now.groups[0]
    if old.path != new.path or old.oom_kill_count is None or new.oom_kill_count is None:
        return False
    return new.oom_kill_count > old.oom_kill_count
