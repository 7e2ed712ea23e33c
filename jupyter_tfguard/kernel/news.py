"""Crashes of earlier kernels: reports those that no watcher has reported, and prints them once, at the first cell.

Background threads read all files. The first cell waits for them once, at most 0.25 s.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING

from ..config import TfGuard
from ..places import bundles_folder, copies_folder, recordings_folder
from ..record.alive import recording_name
from ..record.identity import ProcessIdentity
from ..record.recording import SEEN
from ..shield import shielded
from ..threads import background_thread
from .header import watcher_alive

if TYPE_CHECKING:
    from ..record.unsaved import BackedStore

_WAIT_SECONDS = 0.25
# Voila sets it in kernels whose output visitors of a page see.
_VOILA_VARIABLE = "VOILA_REQUEST_URL"


class News:
    """Announces crashes of earlier kernels in this kernel.

    Args:
        settings: The options.
        kernel_id, notebook_path: Only crashes of this kernel or notebook are announced.
    """

    def __init__(self, settings: TfGuard, kernel_id: str | None, notebook_path: str | None) -> None:
        self._settings = settings
        self._kernel_id = kernel_id
        self._notebook_path = notebook_path
        self._lines: list[str] = []
        self._store: BackedStore | None = None
        self._reported = threading.Event()
        self._ready: threading.Event | None = None  # from the first cell on
        self._printed = not settings.announce_last_crash or _VOILA_VARIABLE in os.environ

    def start(self) -> None:
        """Report kernels that crashed without a watcher, in the background; a running watcher reports them itself."""
        if watcher_alive() or (copies_folder() is None and not has_recordings_of_ended()):
            self._reported.set()
        else:
            background_thread(self._report, "tfguard-reports").start()

    def wait_reported(self, seconds: float) -> None:
        """Wait, at most `seconds`, until kernels that crashed without a server have been reported."""
        self._reported.wait(seconds)

    def at_cell(self) -> None:
        """Print the lines at the start of a cell; lines that are not ready yet are printed at a later cell."""
        if self._printed:
            return
        wait = 0.0
        if self._ready is None:
            is_kept = self._store is not None and bool(self._store.unsaved())
            if self._reported.is_set() and not is_kept and not _any_bundle():
                self._printed = True
                return
            wait = _WAIT_SECONDS
            self._ready = threading.Event()
            background_thread(functools.partial(self._fetch, self._ready), "tfguard-news").start()
        if self._ready.wait(wait):
            self._printed = True
            for line in self._lines:
                print(line)

    def reports(self) -> BackedStore:
        """All reports of this user, with those that a server could not save. Reads files."""
        if _has_left_recordings():
            with shielded("reports that a server could not save"):
                self._report_unwatched()
        return self._reports()

    def _reports(self) -> BackedStore:
        if self._store is None:
            from ..record.unsaved import BackedStore

            self._store = BackedStore(bundles_folder())
        return self._store

    def _report(self) -> None:
        try:
            with shielded("reports of kernels that died without a server"):
                self._report_unwatched()
        finally:
            self._reported.set()

    def _report_unwatched(self) -> None:
        from ..postmortem.handle import Postmortem

        root, copies = recordings_folder(), copies_folder()
        Postmortem(root, self._reports(), self._settings, copies=copies).handle_unwatched()

    def _fetch(self, ready: threading.Event) -> None:
        self._reported.wait()
        try:
            with shielded("announcing the last crash"):
                from ..report.announce import announcement

                self._lines = announcement(self._reports(), self._kernel_id, self._notebook_path)
        finally:
            ready.set()


def has_recordings_of_ended() -> bool:
    """True if there is a recording whose kernel is not running here; a thread examines it later."""
    try:
        paths = list(recordings_folder().iterdir())
    except OSError:
        return False
    for path in paths:
        writer = ProcessIdentity.from_folder_name(recording_name(path))
        if writer is not None and not writer.is_running():
            return True
    return False


def _has_left_recordings() -> bool:
    """True if a server has left what it saw of a crash beside the recording, because it could not report the crash."""
    try:
        return any((path / SEEN).exists() for path in recordings_folder().iterdir())
    except OSError:
        return False


def _any_bundle() -> bool:
    try:
        return bool(os.listdir(bundles_folder()))
    except OSError:
        return False
