"""Keeps up to date what every watched kernel says about itself, in a loop of its own.

A recording can be on a file system that hangs; samples of memory must not wait for it. A kernel that is idle writes nothing,
so its recording is read rarely.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from .live import LiveReader
from .live_cells import Resident
from .polling import Loop
from .witness import Witness

_ROUND_SECONDS = 0.5
_IDLE_SECONDS = 8.0
_FRESH_SECONDS = 10.0  # the header of a new recording is complete a moment after it is there
_AFTER_BUSY_SECONDS = 1.5  # what a cell wrote at its very end


class _Feed:
    """One recording, and when it is read next."""

    def __init__(self, path: Path) -> None:
        self.reader = LiveReader(path)
        self.due = self.busy_until = 0.0
        self.fresh_until = time.monotonic() + _FRESH_SECONDS
        self.heard_count: int | None = None


def _resident(witness: Witness) -> Resident:
    latest = witness.latest
    rss = None if latest is None else latest.values.get("process.rss_bytes")
    return None if rss is None else int(rss), witness.peak_bytes


class LiveFeed(Loop):
    """Fills :attr:`Witness.live`: twice a second for a kernel that is busy or just did something, else every 8 seconds.

    Args:
        recordings: Folder of all recordings.
        witnesses: Returns what is watched now.
    """

    def __init__(self, recordings: Path, witnesses: Callable[[], tuple[Witness, ...]]) -> None:
        super().__init__("tfguard-live", witnesses)
        self._recordings = recordings
        self._feeds: dict[Witness, _Feed] = {}

    def _round(self, witnesses: tuple[Witness, ...], now: float) -> float:
        for witness in self._feeds.keys() - set(witnesses):
            self._feeds.pop(witness).reader.close()
        for witness in witnesses:
            if self._stopping:
                break
            feed = self._feeds.get(witness)
            if feed is None:
                path = self._recordings / witness.identity.folder_name
                feed = self._feeds[witness] = _Feed(path)
            heard = witness.kernel.heard_count()
            if witness.is_busy or heard != feed.heard_count:
                feed.busy_until, feed.heard_count = now, heard
            if now < feed.due and now > feed.busy_until + _AFTER_BUSY_SECONDS:
                continue
            witness.live = feed.reader.read(_resident(witness))
            # A recording that does not exist yet may be there in the next round.
            if witness.live.header is None:
                feed.fresh_until = now + _FRESH_SECONDS
            feed.due = now if now < feed.fresh_until else now + _IDLE_SECONDS
            guard = (witness.live.header or {}).get("guard")
            pipe = guard.get("stderr_pipe") if isinstance(guard, dict) else None
            witness.stderr.hold(witness.identity, pipe)
            if not witness.is_busy:
                feed.reader.close()  # opened again next time: user code may load the guard again, into a new folder
        return _ROUND_SECONDS

    def _end(self) -> None:
        for feed in self._feeds.values():
            feed.reader.close()
