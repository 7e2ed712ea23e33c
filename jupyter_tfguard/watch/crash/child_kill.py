"""Detects that the OOM killer killed a child of a kernel that is still running.

Evidence: the OOM kill counter of the kernel's cgroup rose, and a known child is gone. Both are given time to settle: a
large child takes a second or more to disappear, and a kernel that is itself the victim still appears alive for a
moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...record.facts import Counters
from .process_handle import is_running

_WAIT_SECONDS = 4.0
# A worker pool keeps replacing killed workers: report at most one kill a minute.
_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class ChildKill:
    """One kill.

    Attributes:
        before: Counters before the rise. after: counters after it.
        ended: Children that are gone; several if more than one ended in the same second.
        known: All children before the rise. The victim may still be ending while another one is gone.
        time: Unix seconds of the poll that showed the rise.
    """

    before: Counters
    after: Counters
    ended: tuple[int, ...]
    time: float
    known: frozenset[int]


@dataclass(frozen=True)
class ReportedKill:
    """A kill that has a report.

    Attributes:
        time: Unix seconds.
        facts: The evidence in the report, as sentences with numbers.
    """

    time: float
    facts: tuple[str, ...]


class ChildKillDetector:
    """Compares each poll with the previous one, about once a second."""

    def __init__(self) -> None:
        self._previous: Counters | None = None
        self._rise: tuple[Counters, Counters, frozenset[int]] | None = None
        self._found: ChildKill | None = None
        self._last_report = -math.inf

    def poll(self, now: Counters, children: tuple[int, ...]) -> None:
        """Process the current counters and the children known from the previous poll."""
        previous, self._previous = self._previous, now
        if previous is now:  # kernels of one group share a reading
            return
        if previous is not None and self._rise is None and _rose(previous, now):
            self._rise = (previous, now, frozenset(children))
        if self._rise is None or self._found is not None:
            return
        before, after, known = self._rise
        ended = tuple(sorted(child for child in known if not is_running(child)))
        if ended:
            self._found = ChildKill(before, after, ended, after.time, known)
            self._rise = None
        elif now.time - after.time > _WAIT_SECONDS:
            self._rise = None

    def take(self, now: float) -> ChildKill | None:
        """A kill detected at least a second ago, returned once, at most one a minute; else None."""
        found = self._found
        if found is None or now - found.time < 1.0:
            return None
        self._found = None
        if 0 <= now - self._last_report < _PAUSE_SECONDS:
            return None
        self._last_report = now
        return found


def _rose(previous: Counters, now: Counters) -> bool:
    if not previous.groups or not now.groups:
        return False
    # The first group is the innermost. If the kernel was moved to another group, the counts are not comparable.
    old, new = previous.groups[0], now.groups[0]
    if old.path != new.path or old.oom_kill_count is None or new.oom_kill_count is None:
        return False
    return new.oom_kill_count > old.oom_kill_count
