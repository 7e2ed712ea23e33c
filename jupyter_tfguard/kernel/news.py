"""Deaths of earlier kernels: reported where no watcher did, and told of at the first cell, once.

It happens in threads of its own: a cell waits a moment for them once, never for a file.
"""

from __future__ import annotations

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


class News:
    """What the user of this kernel should hear of earlier ones.

    Args:
        settings: The options.
        kernel_id, notebook_path: Whose death is of interest here.
    """

    def __init__(self, settings: TfGuard, kernel_id: str | None, notebook_path: str | None) -> None:
        self._settings = settings
        self._kernel_id = kernel_id
        self._notebook_path = notebook_path
        self._lines: list[str] = []
        self._remote = False  # then reports lie where a look may take for ever
        self._reported = threading.Event()
        self._ready = threading.Event()
        self._asked = False
        self._told = False

    def start(self) -> None:
        """Report kernels that died unwatched, in the background; a living watcher does that itself."""
        self._remote = copies_folder() is not None
        if watcher_alive() or not (self._remote or has_dead_recordings()):
            self._reported.set()
        else:
            background_thread(self._report, "tfguard-reports").start()

    def wait_reported(self, seconds: float) -> None:
        """Wait, no longer than that, until the reports of kernels that died unwatched are made."""
        self._reported.wait(seconds)

    def at_cell(self) -> None:
        """At the start of a cell: print the lines. What is not ready now is told at a later cell."""
        if self._told:
            return
        wait = 0.0
        if not self._asked:
            if not self._settings.announce_last_death or (
                self._reported.is_set() and not self._remote and not _any_bundle()
            ):
                self._told = True
                return
            self._asked = True
            wait = _WAIT_SECONDS
            background_thread(self._ask, "tfguard-news").start()
        if self._ready.wait(wait):
            self._told = True
            for line in self._lines:
                print(line)

    def _report(self) -> None:
        try:
            with shielded("reports of kernels that died unwatched"):
                from ..postmortem.handle import Postmortem
                from ..record.bundle import BundleStore

                store = BundleStore(bundles_folder())
                Postmortem(
                    recordings_folder(), store, self._settings, copies=copies_folder()
                ).handle_unwatched()
        finally:
            self._reported.set()

    def _ask(self) -> None:
        self._reported.wait()
        try:
            with shielded("telling of the last death"):
                from ..record.bundle import BundleStore
                from ..report.announce import announcement

                store = BundleStore(bundles_folder())
                self._lines = announcement(store, self._kernel_id, self._notebook_path)
        finally:
            self._ready.set()


def has_dead_recordings() -> bool:
    """True when a recording is there whose kernel does not run here. A closer look is for a thread."""
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
