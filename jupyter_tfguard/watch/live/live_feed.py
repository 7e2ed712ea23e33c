"""Updates the live state of every tracked kernel from its recording, in a separate thread.

A recording may be on a file system that hangs, and memory samples must not wait for it. An idle kernel writes nothing,
so its recording is read rarely.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ...record.contents import recording_header
from ..monitored import MonitoredKernel
from ..polling import PollThread
from .live import LiveReader
from .live_cells import Resident

_ROUND_SECONDS = 0.5
_NEW_ROUND_SECONDS = 0.1  # a kernel may end right after its start
_IDLE_SECONDS = 8.0
_FRESH_SECONDS = 10.0  # the header of a new recording is completed a moment after it appears
_AFTER_BUSY_SECONDS = 1.5  # to read what a cell wrote at its end


class _Feed:
    """One recording, and the time of its next read."""

    def __init__(self, path: Path) -> None:
        self.reader = LiveReader(path)
        self.due = self.busy_until = 0.0
        self.fresh_until = time.monotonic() + _FRESH_SECONDS
        self.heard_count: int | None = None


def _resident(monitored: MonitoredKernel) -> Resident:
    latest = monitored.latest
    rss = None if latest is None else latest.values.get("process.rss_bytes")
    return None if rss is None else int(rss), monitored.peak_bytes


class LiveFeed(PollThread):
    """Fills :attr:`MonitoredKernel.live`: twice a second for a busy or recently active kernel, else every 8 seconds.

    Ten times a second until the stderr of a new kernel is held.

    Args:
        recordings: Folder of all recordings.
        monitored_kernels: Returns the kernels that are tracked now.
    """

    def __init__(
        self, recordings: Path, monitored_kernels: Callable[[], tuple[MonitoredKernel, ...]]
    ) -> None:
        super().__init__("tfguard-live", monitored_kernels)
        self._recordings = recordings
        self._feeds: dict[MonitoredKernel, _Feed] = {}

    def _round(self, monitored_kernels: tuple[MonitoredKernel, ...], now: float) -> float:
        for monitored in self._feeds.keys() - set(monitored_kernels):
            self._feeds.pop(monitored).reader.close()
        pause = _ROUND_SECONDS
        for monitored in monitored_kernels:
            if self._stopping:
                break
            feed = self._feeds.get(monitored)
            if feed is None:
                path = self._recordings / monitored.identity.folder_name
                feed = self._feeds[monitored] = _Feed(path)
            heard = monitored.kernel.heard_count()
            if monitored.is_busy or heard != feed.heard_count:
                feed.busy_until, feed.heard_count = now, heard
            if now < feed.due and now > feed.busy_until + _AFTER_BUSY_SECONDS:
                continue
            monitored.live = feed.reader.read(_resident(monitored))
            # The recording may appear before the next round.
            if monitored.live.header is None:
                feed.fresh_until = now + _FRESH_SECONDS
            feed.due = now if now < feed.fresh_until else now + _IDLE_SECONDS
            header = monitored.live.header or {}
            is_new = now < monitored.since + _FRESH_SECONDS
            if is_new:  # the reader's header may be half a second old
                header = recording_header(feed.reader.path)
            monitored.stderr.hold(monitored.identity, header.get("guard"))
            if is_new and not monitored.stderr.is_held:
                pause = _NEW_ROUND_SECONDS
            if not monitored.is_busy:
                # Reopened next time: user code may reload the guard, which creates a new folder.
                feed.reader.close()
        return pause

    def _end(self) -> None:
        for feed in self._feeds.values():
            feed.reader.close()
