"""Removes reports above a limit of count, bytes or days, and reports and recordings on the user's request.

Several processes may remove, write and read at the same time. Only names that tfguard creates are touched: the folder
may contain other files. The recordings of running kernels stay.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import BundleNotFound
from ..private_files import remove_folder, remove_tree
from .alive import crash_known_by, recording_name
from .bundle import BundleStore, died_of
from .contents import recording_header
from .identity import ProcessIdentity

_LEFTOVER_SECONDS = 3600.0


def prune(store: BundleStore, *, limit_count: int, limit_bytes: int, limit_days: float) -> None:
    """Remove the oldest reports above a limit. The newest unread report always stays.

    Args:
        store: All reports.
        limit_count: Largest number of reports to keep.
        limit_bytes: Largest total size of the reports to keep.
        limit_days: Largest age of a report, in days since the crash.
    """
    sweep_leftovers(store, age_seconds=_LEFTOVER_SECONDS)
    now, total_bytes = time.time(), 0
    ids = store.ids()
    newest_unread = next((found for found in ids if store.is_unread(found)), None)
    for position, bundle_id in enumerate(ids):
        total_bytes += store.size_bytes(bundle_id)
        too_old = now - died_of(bundle_id) > limit_days * 86400
        over = too_old or position >= limit_count or total_bytes > limit_bytes
        if over and bundle_id != newest_unread:
            # If it cannot be deleted, the next prune tries again.
            with contextlib.suppress(BundleNotFound, OSError):
                store.remove(bundle_id)


def sweep_leftovers(store: BundleStore, *, age_seconds: float) -> None:
    """Delete folders of this age or older that a killed process left half written or half removed."""
    for name in store.leftovers():
        path = store.root / name
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime >= age_seconds:
                remove_folder(path)


@dataclass(frozen=True)
class Forgotten:
    """The result of a removal.

    Attributes:
        removed: Ids of reports, or names of recordings.
        living: Recordings of running kernels, which are never removed.
        stayed: Items that could not be removed, each with the reason.
    """

    removed: tuple[str, ...] = ()
    living: tuple[str, ...] = ()
    stayed: tuple[str, ...] = ()


def forget_reports(store: BundleStore, ids: Iterable[str]) -> Forgotten:
    """Remove these reports. A report that is already gone counts as removed."""
    removed, stayed = [], []
    for report_id in ids:
        try:
            with contextlib.suppress(BundleNotFound):
                store.remove(report_id)
            removed.append(report_id)
        except OSError as bad:
            stayed.append(f"{report_id}: {bad.strerror or bad}")
    return Forgotten(tuple(removed), (), tuple(stayed))


def forget_leftovers(store: BundleStore) -> None:
    """Remove half-written and half-removed reports, then the folder if it is empty."""
    sweep_leftovers(store, age_seconds=0.0)
    with contextlib.suppress(OSError):
        store.root.rmdir()


def forget_recordings(root: Path) -> Forgotten:
    """Remove the recordings of all kernels that are no longer running."""
    living: list[str] = []
    ended: list[str] = []
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        identity = ProcessIdentity.from_folder_name(recording_name(path))
        if identity is not None:
            has_ended = crash_known_by(path, identity, recording_header(path)) is not None
            (ended if has_ended else living).append(path.name)
    removed, stayed = [], []
    for name in ended:
        try:
            with contextlib.suppress(FileNotFoundError):
                remove_tree(root / name)
            removed.append(name)
        except OSError as bad:
            stayed.append(f"{name}: {bad.strerror or bad}")
    return Forgotten(tuple(removed), tuple(living), tuple(stayed))
