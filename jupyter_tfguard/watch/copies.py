"""Copies the recordings of running kernels to the data folder, where that is on a remote file system.

Kernels write to a local disk, so that a cell never waits for a file server. Once a second what is new is carried over, in
a thread of its own that nobody waits for: a file server that hangs costs the copies, and nothing else. A copy that was
cut short shows by the CRC of each record. While the kernel's process lives its copy is touched, so that other machines
can tell.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from ..errors import FolderUnusable, RecordUnreadable
from ..record.alive import LOCK, REFRESH_SECONDS, Place
from ..record.contents import RECORDS_LIMIT_BYTES, recording_header
from ..record.folders import PrivateFolder, file_stats
from ..record.identity import ProcessIdentity
from ..record.recording import HEADER, remove_recording
from ..record.records import HEADER_BYTES, RecordHeader, read_header
from ..record.tail import RecordTail
from ..shield import note_problem

_ROUND_SECONDS = 1.0
_TEXT_LIMIT_BYTES = 128 * 1024
_HANGS_SECONDS = 10.0
_WAIT_SECONDS = 2.0
_RECORDS = ".ring"


class Copies:
    """Keeps the copies up to date, from :meth:`start` to :meth:`stop`.

    Args:
        recordings: Where kernels write.
        copies: Where the copies go.
        kernels: Who is watched now.
    """

    def __init__(
        self, recordings: Path, copies: Path, kernels: Callable[[], Iterable[ProcessIdentity]]
    ) -> None:
        self._recordings = recordings
        self._copies = copies
        self._kernels = kernels
        self._copied: dict[ProcessIdentity, _Copy] = {}
        self._settled: set[ProcessIdentity] = set()
        self._left: set[ProcessIdentity] = set()
        self._busy_since: float | None = None
        self._lock = threading.Lock()  # held while one kernel is copied
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tfguard-copies", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a copy that hangs is left alone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_WAIT_SECONDS)

    @property
    def problem(self) -> str | None:
        """Why the copies are not up to date, as a sentence; None when they are."""
        since = self._busy_since
        if since is None or time.monotonic() - since < _HANGS_SECONDS:
            return None
        seconds = time.monotonic() - since
        return f"The file system of {self._copies} has not answered for {seconds:.0f} s; recordings are not copied there."

    def settle(self, identity: ProcessIdentity) -> Path:
        """Copy no more of a kernel that has ended.

        Returns:
            The recording that its report is to be made from: the local one; the copy when that is gone.
        """
        local, copy = self._recordings / identity.folder_name, self._copies / identity.folder_name
        self._settled.add(identity)
        # Not for ever: the thread may hang in this very kernel's copy.
        mine = self._lock.acquire(timeout=_WAIT_SECONDS)
        try:
            if not local.is_dir():
                return copy
            if mine:
                remove_recording(copy)
            else:
                self._left.add(identity)
            return local
        finally:
            if mine:
                self._lock.release()

    def _run(self) -> None:
        while not self._stop.wait(_ROUND_SECONDS):
            self._busy_since = time.monotonic()
            try:
                self._round()
            except Exception as bad:
                note_problem("copying recordings to the data folder", bad)
            self._busy_since = None

    def _round(self) -> None:
        kernels = set(self._kernels())
        self._settled &= kernels
        while self._left:
            remove_recording(self._copies / self._left.pop().folder_name)
        for identity in self._copied.keys() - kernels:
            del self._copied[identity]
        for identity in kernels:
            with self._lock:
                if identity in self._settled or self._stop.is_set():
                    continue
                copy = self._copied.get(identity)
                if copy is None:
                    name = identity.folder_name
                    copy = _Copy(self._recordings / name, self._copies / name)
                    self._copied[identity] = copy
                copy.update()


@dataclass
class _Copy:
    """One kernel's recording and its copy.

    Attributes:
        stamps: Of each file as it was when it was copied last.
        rings: The files of records, followed.
        touched: Monotonic seconds when the copy was touched last.
    """

    source: Path
    target: Path
    stamps: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    rings: dict[str, _Ring] = field(default_factory=dict)
    touched: float = 0.0
    refused: bool = False

    def update(self) -> None:
        """Carry over what has changed. What fails is noted, and tried again."""
        if self.refused:
            return
        changed = dict(self._changed())
        if HEADER not in self.stamps and HEADER not in changed:
            return  # not begun, or gone with the folder: the copy speaks from here on
        try:
            if not self.stamps and self._is_of_another():
                self.refused = True
                raise FolderUnusable(f"{self.target} is the copy of another machine's kernel.")
            self._carry(changed)
        except (OSError, FolderUnusable) as bad:
            note_problem("copying a recording to the data folder", bad)

    def _changed(self) -> Iterable[tuple[str, tuple[int, int, int]]]:
        for name, found in file_stats(self.source):
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if name != LOCK and not name.startswith(".") and self.stamps.get(name) != stamp:
                yield name, stamp

    def _is_of_another(self) -> bool:
        there, ours = recording_header(self.target), recording_header(self.source)
        return bool(there) and Place.of(there) != Place.of(ours)

    def _carry(self, changed: dict[str, tuple[int, int, int]]) -> None:
        due = time.monotonic() - self.touched > REFRESH_SECONDS
        if not changed and not (due and self.target.is_dir()):
            return
        with PrivateFolder(self.target) as target:
            if changed:
                with PrivateFolder(self.source, make=False) as source:
                    # A copy without a header could not be read.
                    for name in sorted(changed, key=lambda name: name != HEADER):
                        self._copy(name, source, target)
                        self.stamps[name] = changed[name]
                    self._forget_removed(source, target)
            if due:
                os.utime(self.target)
                self.touched = time.monotonic()

    def _copy(self, name: str, source: PrivateFolder, target: PrivateFolder) -> None:
        if name.endswith(_RECORDS):
            ring = self.rings.setdefault(name, _Ring(name))
            ring.copy(source, target)
            return
        content = source.read(name, _TEXT_LIMIT_BYTES)
        if content is not None:
            target.write_whole(name, content)

    def _forget_removed(self, source: PrivateFolder, target: PrivateFolder) -> None:
        for name in self.stamps.keys() - set(source.names()) if source.names() else ():
            del self.stamps[name]
            self.rings.pop(name, None)
            with contextlib.suppress(OSError):
                target.remove(name)


class _Ring:
    """A file of records and its copy: whole at first, then the records that are new."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tail = RecordTail(name, RECORDS_LIMIT_BYTES)
        self._header: RecordHeader | None = None
        self._file: tuple[int, int] | None = None

    def copy(self, source: PrivateFolder, target: PrivateFolder) -> None:
        """Carry over what is new.

        Raises:
            OSError, FolderUnusable: The target refused.
        """
        # Before the file is read: what is written meanwhile is new next time.
        new = [record.sequence for record in self._tail.read(source)]
        try:
            reading = source.open(self._name, os.O_RDONLY)
        except (OSError, FolderUnusable):
            return
        try:
            found = os.fstat(reading)
            writing = target.open(self._name, os.O_RDWR | os.O_CREAT)
            try:
                if self._header is None or self._file != (found.st_dev, found.st_ino):
                    self._copy_whole(reading, writing)
                    self._file = (found.st_dev, found.st_ino)
                else:
                    self._copy_records(reading, writing, self._header, new)
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def _copy_whole(self, reading: int, writing: int) -> None:
        content = _read_at(reading, RECORDS_LIMIT_BYTES, 0)
        os.ftruncate(writing, len(content))
        _write_at(writing, content, 0)
        with contextlib.suppress(RecordUnreadable):
            self._header = read_header(content)

    def _copy_records(
        self, reading: int, writing: int, header: RecordHeader, new: list[int]
    ) -> None:
        slots = sorted({(sequence - 1) % header.capacity for sequence in new})
        # Neighbours go over in one piece: a file server counts calls, not bytes.
        for _, together in groupby(enumerate(slots), key=lambda pair: pair[1] - pair[0]):
            run = [slot for _, slot in together]
            start = HEADER_BYTES + run[0] * header.record_bytes
            _write_at(writing, _read_at(reading, len(run) * header.record_bytes, start), start)


def _read_at(descriptor: int, length: int, start: int) -> bytes:
    parts = []
    os.lseek(descriptor, start, os.SEEK_SET)
    while length > 0 and (part := os.read(descriptor, min(length, 1 << 20))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _write_at(descriptor: int, content: bytes, start: int) -> None:
    os.lseek(descriptor, start, os.SEEK_SET)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
