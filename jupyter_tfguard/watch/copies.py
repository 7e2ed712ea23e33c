"""Copies the recordings of running kernels to the data folder if that is on a remote file system.

Kernels write to a local disk, so that a cell never waits for a file server. A separate thread copies changed files
every three seconds. Nothing waits for this thread: if the file server hangs, only the copies stop. While a kernel runs,
the modification time of its copy is updated, so that other machines see that the kernel is alive.

Text reaches the file server only redacted, and of stderr only the part that a report shows. The rest stays on the local disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path

from ..errors import FolderUnusable
from ..private_files import PrivateFolder, file_stats
from ..record.alive import LOCK
from ..record.contents import RECORDS_LIMIT_BYTES
from ..record.identity import ProcessIdentity
from ..record.native_text import KEPT_BYTES, file_name, numbers_of
from ..record.recording import HEADER, remove_recording
from ..redact import clean_value, redact
from ..shield import note_problem

_ROUND_SECONDS = 3.0
_TEXT_LIMIT_BYTES = KEPT_BYTES
_WAIT_SECONDS = 2.0
_RECORDS = ".ring"
_Stamps = dict[str, tuple[int, int, int]]


class Copies:
    """Updates the copies from :meth:`start` to :meth:`stop`.

    Args:
        recordings: Where kernels write.
        copies: Where the copies go.
    """

    def __init__(self, recordings: Path, copies: Path) -> None:
        self._recordings = recordings
        self._copies = copies
        self._copied: dict[str, _Stamps] = {}  # file stamps at the last copy, per recording
        self._settled: set[ProcessIdentity] = set()  # copies to remove
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tfguard-copies", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; a copy that hangs is abandoned."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_WAIT_SECONDS)

    def settle(self, identity: ProcessIdentity) -> Path:
        """Schedule the copy of an ended kernel for removal in the next round.

        Returns:
            The recording to make the report from: the local one, or the copy if the local one is gone.
        """
        local = self._recordings / identity.folder_name
        if not local.is_dir():
            return self._copies / identity.folder_name
        self._settled.add(identity)
        return local

    def _run(self) -> None:
        while not self._stop.wait(_ROUND_SECONDS):
            try:
                self._round()
            except Exception as bad:
                note_problem("copying recordings to the data folder", bad)
        self._remove_settled()

    def _remove_settled(self) -> None:
        while self._settled:
            remove_recording(self._copies / self._settled.pop().folder_name)

    def _round(self) -> None:
        self._remove_settled()
        names = {name for name, _ in file_stats(self._recordings)}
        self._copied = {name: stamps for name, stamps in self._copied.items() if name in names}
        for name in sorted(names):
            identity = ProcessIdentity.from_folder_name(name)
            if identity is None or not identity.is_running() or self._stop.is_set():
                continue
            try:
                self._copy(name)
            except (OSError, FolderUnusable) as bad:  # retried in the next round
                note_problem("copying a recording to the data folder", bad)

    def _copy(self, name: str) -> None:
        """Copy the changed files of one recording, each atomically."""
        source, target = self._recordings / name, self._copies / name
        found = _stamps(source)
        if HEADER not in found:
            return  # not started yet: a copy without a header is unreadable
        before = self._copied.setdefault(name, {})
        reading, writing = PrivateFolder(source, make=False), PrivateFolder(target)
        for file in sorted(found, key=lambda file: file != HEADER):
            if before.get(file) != found[file]:
                limit = RECORDS_LIMIT_BYTES if file.endswith(_RECORDS) else _TEXT_LIMIT_BYTES
                content = reading.read(file, limit)
                if content is not None:
                    writing.write_whole(file, _redacted(file, content, limit))
                before[file] = found[file]
        for file in before.keys() - found.keys():
            del before[file]
            with contextlib.suppress(OSError):
                writing.remove(file)
        os.utime(target)


def _stamps(folder: Path) -> _Stamps:
    """Stamps of the files to copy. Of stderr that is the newest file, and the one before it while that is short."""
    found = {
        name: (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        for name, stat in file_stats(folder)
        if name != LOCK and not name.startswith(".")
    }
    kept_bytes = 0
    for number in reversed(numbers_of(list(found))):
        name = file_name(number)
        if kept_bytes >= KEPT_BYTES:
            del found[name]
        else:
            kept_bytes += found[name][1]
    return found


def _redacted(name: str, content: bytes, limit_bytes: int) -> bytes:
    """What may leave this machine of a file. Records hold numbers, names, paths, and text of cells that was redacted before."""
    if name == HEADER:
        try:
            return json.dumps(clean_value(json.loads(content))).encode()
        except (ValueError, RecursionError):
            return b"{}"
    if name.endswith(_RECORDS):
        return content
    text = content.decode("utf-8", "replace")
    if (
        len(content) >= limit_bytes
    ):  # the beginning of a line was cut, and with it perhaps the name of a secret
        text = text.partition("\n")[2]
    return redact(text).encode()
