"""Crashes of earlier kernels: reports those that no watcher has reported, and prints them once, at the first cell.

Background threads read all files. The first cell waits for them once, at most 0.25 s.
"""

from __future__ import annotations

import functools
import os
import threading

from ..config import TfGuard
from ..places import bundles_folder, copies_folder, recordings_folder
from ..record.alive import recording_name
from ..record.identity import ProcessIdentity
from ..shield import shielded
from ..threads import background_thread
from .header import watcher_alive

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
        self._reported = threading.Event()
        self._ready: threading.Event | None = None  # from the first cell on
        self._printed = not settings.announce_last_death or _VOILA_VARIABLE in os.environ

    def start(self) -> None:
        """Report kernels that crashed without a watcher, in the background; a running watcher reports them itself."""
        if watcher_alive() or (copies_folder() is None and not has_dead_recordings()):
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
            if self._reported.is_set() and not _any_bundle():
                self._printed = True
                return
            wait = _WAIT_SECONDS
            self._ready = threading.Event()
            background_thread(functools.partial(self._fetch, self._ready), "tfguard-news").start()
        if self._ready.wait(wait):
            self._printed = True
            for line in self._lines:
                print(line)

    def _report(self) -> None:
        try:
            with shielded("reports of kernels that died without a server"):
                from ..postmortem.handle import Postmortem
                from ..record.bundle import BundleStore

                store = BundleStore(bundles_folder())
                Postmortem(
                    recordings_folder(), store, self._settings, copies=copies_folder()
                ).handle_unwatched()
        finally:
            self._reported.set()

    def _fetch(self, ready: threading.Event) -> None:
        self._reported.wait()
        try:
            with shielded("announcing the last crash"):
                from ..record.bundle import BundleStore
                from ..report.announce import announcement

                store = BundleStore(bundles_folder())
                self._lines = announcement(store, self._kernel_id, self._notebook_path)
        finally:
            ready.set()


def has_dead_recordings() -> bool:
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


def _any_bundle() -> bool:
    try:
        return bool(os.listdir(bundles_folder()))
    except OSError:
        return False
