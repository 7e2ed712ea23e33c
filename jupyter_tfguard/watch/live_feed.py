"""Keeps up to date what every watched kernel says of itself, in a thread of its own.

Recordings may lie on a file system that hangs; samples of memory must not wait for it. A kernel that is idle writes nothing,
so its recording is read rarely; one without a recording costs nothing but a look at the list of all recordings.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import RecordUnreadable
from ..record.contents import recording_header
from ..record.identity import ProcessIdentity
from ..shield import shielded
from .live import Live, LiveReader
from .live_cells import Resident
from .process_witness import ProcessWitness
from .witness import Witness

_ROUND_SECONDS = 0.5
_BUSY_READS_HERTZ = 40.0  # of all busy kernels together
_IDLE_SECONDS = 8.0
_IDLE_KNOWN_SECONDS = 60.0  # where the host tells that a kernel did something
_ENDED_SECONDS = 30.0
_AFTER_BUSY_SECONDS = 1.5  # what a cell wrote at its very end


class _Feed:
    """One recording, and when it is to be read next."""

    def __init__(self, path: Path) -> None:
        self.reader = LiveReader(path)
        self.due = self.read = 0.0
        self.busy_until = 0.0
        self.heard_count: int | None = None
        self.ended: float | None = None  # monotonic seconds, of a kernel whose starter goes on


def _resident(witness: Witness) -> Resident:
    latest = witness.latest
    rss = None if latest is None else latest.values.get("process.rss_bytes")
    return None if rss is None else int(rss), witness.peak_bytes


class LiveFeed:
    """Fills :attr:`Witness.live`: twice a second for a busy kernel and after it did something, once in 8 seconds for an
    idle one, once a minute where the host tells what it does.

    Args:
        recordings: Folder of all recordings.
        witnesses: Who is watched now.
    """

    def __init__(
        self, recordings: Path, witnesses: Callable[[], tuple[ProcessWitness, ...]]
    ) -> None:
        self._recordings = recordings
        self._witnesses = witnesses
        self._feeds: dict[ProcessWitness, _Feed] = {}
        self._names: frozenset[str] = frozenset()
        self._recorded: dict[int, list[ProcessIdentity]] = {}
        self._names_stamp: tuple[int, int] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tfguard-live", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(_ROUND_SECONDS):
            with shielded("reading the recordings of running kernels"):
                self._read_all(time.monotonic())
        for feed in self._feeds.values():
            feed.reader.close()

    def _read_all(self, now: float) -> None:
        witnesses = self._witnesses()
        self._leave_ended(set(witnesses))
        self._list_names()
        busy = sum(1 for witness in witnesses if witness.is_busy)
        busy_pause = max(_ROUND_SECONDS / 2, busy / _BUSY_READS_HERTZ)
        for witness in witnesses:
            feed = self._feeds.get(witness)
            if feed is not None and witness.process != witness.identity:
                feed = self._unless_ended(witness, feed, now)
            if feed is None:
                if witness.process.folder_name not in self._names and not self._turned(witness):
                    continue
                path = self._recordings / witness.process.folder_name
                feed = self._feeds[witness] = _Feed(path)
            heard = witness.kernel.heard_count()
            if witness.is_busy or heard != feed.heard_count:
                feed.busy_until, feed.heard_count = now, heard
            if now <= feed.busy_until + _AFTER_BUSY_SECONDS:
                feed.due = min(feed.due, feed.read + busy_pause)
            if now < feed.due:
                continue
            feed.read = now
            if self._stop.is_set():
                return
            witness.live = feed.reader.read(_resident(witness))
            if witness.live.header is None:
                feed.due = 0.0
                continue  # it is being made: again in the next round
            feed.due = now + (_IDLE_SECONDS if heard is None else _IDLE_KNOWN_SECONDS)
            if witness.is_busy:
                feed.reader.give_space_back()
            else:
                feed.reader.close()  # opened again for the next time: descriptors are scarce

    def _turned(self, witness: ProcessWitness) -> bool:
        """Whether the process is a program around the kernel, which is looked at instead from now on: a descendant of it
        says in its recording that it is this kernel.
        """
        for child in witness.children:
            for identity in self._recorded.get(child, ()):
                if ProcessIdentity.of(child) != identity:
                    continue
                with contextlib.suppress(RecordUnreadable):
                    header = recording_header(self._recordings / identity.folder_name)
                    if header.get("kernel_id") == witness.kernel.kernel_id:
                        witness.turn_to(identity)
                        return witness.process == identity
        return False

    def _unless_ended(self, witness: ProcessWitness, feed: _Feed, now: float) -> _Feed | None:
        """Nothing once a kernel has ended long ago, and the program around it goes on: it may start another one."""
        if witness.process.is_running():
            return feed
        feed.ended = feed.ended or now
        if now - feed.ended < _ENDED_SECONDS:
            return feed
        feed.reader.close()
        del self._feeds[witness]
        witness.live = Live()
        witness.turn_to(witness.identity)
        return None

    def _leave_ended(self, living: set[ProcessWitness]) -> None:
        for witness in [w for w in self._feeds if w not in living]:
            self._feeds.pop(witness).reader.close()

    def _list_names(self) -> None:
        """Which recordings there are; listed only when one came or went."""
        try:
            found = os.stat(self._recordings)
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._names_stamp:
                # Noted first: what comes while it is listed changes the time again.
                self._names = frozenset(os.listdir(self._recordings))
                self._recorded = {}
                for identity in map(ProcessIdentity.from_folder_name, self._names):
                    if identity is not None:
                        self._recorded.setdefault(identity.pid, []).append(identity)
                # Changes within one tick of the clock leave the same time.
                settled = time.time_ns() - found.st_mtime_ns > 50_000_000
                self._names_stamp = stamp if settled else None
        except OSError:
            self._names, self._names_stamp = frozenset(), None

    def stop(self) -> None:
        """End; a read that hangs is left alone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1)
