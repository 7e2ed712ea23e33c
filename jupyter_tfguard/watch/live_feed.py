"""Keeps up to date what every watched kernel says of itself, in a thread of its own.

Recordings may lie on a network file system that hangs; samples of memory must not wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from ..record.identity import ProcessIdentity
from ..shield import shielded
from .live import LiveReader
from .witness import Witness

_ROUND_SECONDS = 0.5


class LiveFeed:
    """Fills :attr:`Witness.live` twice a second, once in two seconds for an idle kernel whose recording is known.

    Args:
        recordings: Folder of all recordings.
        witnesses: Who is watched now.
    """

    def __init__(self, recordings: Path, witnesses: Callable[[], tuple[Witness, ...]]) -> None:
        self._recordings = recordings
        self._witnesses = witnesses
        self._readers: dict[ProcessIdentity, LiveReader] = {}
        self._round = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tfguard-live", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(_ROUND_SECONDS):
            with shielded("reading the recordings of running kernels"):
                self._read_all()
        for reader in self._readers.values():
            reader.close()

    def _read_all(self) -> None:
        self._round += 1
        witnesses = self._witnesses()
        living = {witness.identity for witness in witnesses}
        for identity in [i for i in self._readers if i not in living]:
            self._readers.pop(identity).close()
        for witness in witnesses:
            if self._round % 4 and witness.live.header is not None and not witness.kernel.is_busy():
                continue
            reader = self._readers.get(witness.identity)
            if reader is None:
                path = self._recordings / witness.identity.folder_name
                reader = self._readers[witness.identity] = LiveReader(path)
            witness.live = reader.read()

    def stop(self) -> None:
        """End; a read that hangs is left alone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1)
