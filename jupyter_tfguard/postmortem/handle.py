"""The steps for every crash, in this order: capture, diagnose, save, notify.

A crash is detected by the watcher (:meth:`Postmortem.handle`), or found in the recording of an unwatched kernel
(:meth:`Postmortem.handle_unwatched`). Its report is passed to `on_report`: in a server, to the log and to open pages.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..config import TfGuard
from ..diagnosis.diagnose import diagnose
from ..errors import BundleNotFound, FolderUnusable, RecordUnreadable
from ..record.alive import claim, give_back
from ..record.bundle import STAMP_LENGTH, BundleStore, died_of, stamp
from ..record.identity import ProcessIdentity
from ..record.late_stderr import wait_until_finished
from ..record.recording import leave_seen, remove_recording
from ..record.retention import prune
from ..record.unsaved import BackedStore, fix_of
from ..report.wire import to_entry_and_report
from ..shield import note_problem
from ..watch.crash.crash import Crash
from .capture import capture, capture_orphan, seen_part
from .detect import InHand, each_orphan, unclaimed
from .wrapped import goes_on, only_started, recorder_of, unwrapped

RESTART_JUPYTER = (
    "Restart Jupyter: jupyter-tfguard was upgraded or removed while this server was running."
)
_DID_NOT_STAY = (
    "The start command ended with exit code 0 before the kernel answered. Jupyter takes that for the end of the kernel, "
    "and starts it again."
)
_LET_IT_STAY = (
    "Start the kernel in the foreground in kernel.json: with exec, without setsid, nohup or &."
)
EARLIER_SECONDS = 86400.0
EARLIER_LIMIT = 30
# Crashes whose reports could not be made, and of which nothing could be left beside the recording: to be retried.
_UNWRITTEN_LIMIT = 20

Json = dict[str, Any]


class Postmortem:
    """Creates the reports. Its methods read and write files, and may be called from any thread.

    Args:
        recordings: Folder of the kernels' recordings.
        store: Store of the reports.
        settings: Retention settings of the reports.
        copies: Folder to which watchers copy recordings; None when they do not.
        settle: Finishes the copy of a recording and returns its folder; None if recordings are not copied.
        in_hand: Whether this process watches a kernel, or watched it until a moment ago, so that :meth:`handle` gets its
            crash.
        on_report: Called with the list entry of the report, once for each crash, in the thread that created it.
        on_saved: Called when reports that were only in memory have been saved.
        on_failure: Called with a crash whose report could not be made, the error, and what the user can do about it;
            it is retried.
        is_upgraded: Whether the package's files on disk have changed since this process started.
    """

    def __init__(
        self,
        recordings: Path,
        store: BundleStore,
        settings: TfGuard,
        *,
        copies: Path | None = None,
        settle: Callable[[ProcessIdentity], Path] | None = None,
        in_hand: InHand = unclaimed,
        on_report: Callable[[Json], None] = lambda entry: None,
        on_saved: Callable[[], None] = lambda: None,
        on_failure: Callable[[Crash, Exception, str | None], None] = lambda crash, bad, fix: None,
        is_upgraded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._recordings = recordings
        self._store = store
        self._backed = store if isinstance(store, BackedStore) else None
        self._copies = copies
        self._settle = settle
        self._in_hand = in_hand
        self._on_report = on_report
        self._on_saved = on_saved
        self._on_failure = on_failure
        self._settings = settings
        self._is_upgraded = is_upgraded
        self._only_started: set[str] = set()  # ids of kernels
        self._unwritten: deque[tuple[Crash, Path | None]] = deque(maxlen=_UNWRITTEN_LIMIT)

    def handle(self, crash: Crash) -> None:
        """Report a crash that the watcher detected. Raises nothing: a failure is recorded, and the crash is retried."""
        alive = crash.facts.kernel_alive
        if only_started(crash, crash.kernel_id in self._only_started):
            self._only_started.add(crash.kernel_id)
            note_problem(
                f"starting the kernel {crash.kernel_name}", _DID_NOT_STAY, fix=_LET_IT_STAY
            )
            return
        crash = unwrapped(crash)
        if self._settle is not None and not alive:
            crash = replace(crash, recording=self._settle(crash.identity))
        # Claim it, so that no other process reports it; the recording of a running kernel is not claimed.
        if not alive:
            wait_until_finished(crash.recording)  # of a kernel that another program started
        claimed = None if alive else claim(crash.recording)
        bad = self._try(crash, claimed)
        if bad is not None:
            fix = self._fix(bad)
            note_problem("report of a dead kernel", bad, fix=fix)
            self._on_failure(crash, bad, fix)
        self.save_kept()

    def _fix(self, bad: Exception) -> str | None:
        """What the user can do about this failure; None if unknown."""
        if isinstance(bad, (OSError, FolderUnusable)):
            return fix_of(bad)
        return RESTART_JUPYTER if self._is_upgraded() else None

    def _try(self, crash: Crash, claimed: Path | None) -> Exception | None:
        """Return the error, if any; the crash is then kept to be retried."""
        # The recording of a running kernel is not claimed, and one on a read-only disk cannot be.
        there = claimed or (crash.recording if crash.recording.is_dir() else None)
        bundle: Json | None = None
        try:
            bundle = capture(
                identity=crash.identity,
                kernel_id=crash.kernel_id,
                kernel_name=crash.kernel_name,
                notebook_path=crash.notebook_path,
                recording=there,
                server=crash.facts,
                system_log=crash.system_log,
            )
            entry = self.report(bundle)
        except Exception as bad:  # a folder of another user, an upgrade, a bug in tfguard
            if claimed is None or bundle is None or not _leave(bundle, claimed):
                self._unwritten.append((crash, claimed))
            return bad
        of_ended = () if there is None or crash.facts.kernel_alive else (there,)
        self._close(bundle, entry, of_ended)
        return None

    def _close(self, bundle: Json, entry: Json, recordings: tuple[Path, ...]) -> None:
        """Remove the recordings of a report, or leave them until it is saved; pass the report on."""
        if self._backed is not None and "unsaved" in entry:
            if recordings and bundle["server"] is not None:
                leave_seen(recordings[0], seen_part(bundle))
            self._backed.made_from(entry["id"], [give_back(path) for path in recordings])
            self._backed.save_kept()  # what was seen may have taken the place of larger files
            if self._backed.unsaved_sentence(entry["id"]) is None:
                del entry["unsaved"]
        else:
            for path in reversed(recordings):
                remove_recording(path)
        self._on_report(entry)

    def save_kept(self) -> None:
        """Try again to save the reports that are only in memory."""
        if self._backed is not None and self._backed.save_kept():
            self._on_saved()

    def handle_unwatched(self) -> list[Json]:
        """Report every kernel that died unwatched; remove the recordings of orderly ends.

        Crashes whose reports could not be made or saved before are retried first.

        Returns:
            The list entries. If a report cannot be made, the failure is recorded, and the recording is kept.
        """
        self.save_kept()
        for _ in range(len(self._unwritten)):
            crash, claimed = self._unwritten.popleft()
            if claimed is None or (claimed := claim(claimed)) is not None:
                self._try(crash, claimed)
        made: list[Json] = []
        for orphan in each_orphan(self._recordings, self._copies, self._has_in_hand):
            try:
                bundle = capture_orphan(orphan)
                entry = self.report(bundle)
            except (
                Exception
            ) as bad:  # a full disk, or a damaged recording: continue with the others
                orphan.give_back()
                place = f"report of a kernel that died without a server (pid {orphan.identity.pid})"
                note_problem(place, bad, fix=self._fix(bad))
                continue
            made.append(entry)
            self._close(bundle, entry, orphan.paths)
        return made

    def _has_in_hand(self, identity: ProcessIdentity) -> bool:
        made_from = self._backed is not None and self._backed.is_made_from(identity)
        return made_from or self._in_hand(identity)

    def report(self, bundle: Json) -> Json:
        """Diagnose a captured crash and save it with its report; older reports are removed to make room.

        Returns:
            The list entry of the report; with ``unsaved``, the reason, if the report is only in memory.

        Raises:
            FolderUnusable, OSError: The report could not be written or kept in memory; no partial files are left.
        """
        bundle["earlier_deaths"] = _earlier_deaths(self._store, float(bundle["identity"]["died"]))
        entry, report = to_entry_and_report(bundle, diagnose(bundle))
        self._store.save(bundle, report, entry)
        prune(
            self._store,
            limit_count=self._settings.report_limit_count,
            limit_bytes=self._settings.report_limit_bytes,
            limit_days=self._settings.report_limit_days,
        )
        why = None if self._backed is None else self._backed.unsaved_sentence(entry["id"])
        return entry | {"unread": True} | ({} if why is None else {"unsaved": why})

    def forget(self, identity: ProcessIdentity, kernel_id: str) -> None:
        """Remove the recording of a kernel whose end was requested.

        Args:
            identity: The process that ended: the kernel, or the program that started it.
            kernel_id: Id of the kernel.
        """
        recorder = recorder_of(self._recordings, identity, kernel_id)
        if recorder != identity and goes_on(recorder):
            return
        if self._settle is not None:
            self._settle(recorder)
        claimed = claim(self._recordings / recorder.folder_name)
        if claimed is not None:
            remove_recording(claimed)


def _leave(bundle: Json, claimed: Path) -> bool:
    """Leave a crash to any process, with what was seen of it; False if that could not be written."""
    if not leave_seen(claimed, seen_part(bundle)):
        return False
    give_back(claimed)
    return True


def _earlier_deaths(store: BundleStore, died: float) -> list[Json]:
    """The crashes in the 24 hours before `died` (Unix seconds), at most `EARLIER_LIMIT`, newest first."""
    first, last = stamp(died - EARLIER_SECONDS), stamp(died)
    found: list[Json] = []
    for bundle_id in store.ids():
        if len(found) >= EARLIER_LIMIT:
            break
        if first <= bundle_id[:STAMP_LENGTH] <= last:
            with contextlib.suppress(BundleNotFound, RecordUnreadable):
                entry = store.entry(bundle_id)
                named = ("cause", "kernel_id", "notebook_path", "kernel_alive")
                found.append({n: entry.get(n) for n in named} | {"died": died_of(bundle_id)})
    return sorted(found, key=lambda crash: -crash["died"])
