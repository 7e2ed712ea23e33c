"""The one way from a bundle to a kept report: diagnose, render, write, prune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config import TfGuard
from ..diagnosis.diagnose import diagnose
from ..errors import TfGuardError
from ..postmortem.capture import capture_orphan
from ..postmortem.detect import orphans
from ..record.bundle import BundleStore
from ..record.retention import prune
from ..shield import note_problem
from .wire import to_entry, to_report


def publish(bundle: dict[str, Any], store: BundleStore, settings: TfGuard) -> dict[str, Any]:
    """Diagnose the bundle and keep it with its report.

    Returns:
        The report's line in the list.

    Raises:
        FolderUnusable, OSError: It could not be written; nothing half-written is left.
    """
    diagnosis = diagnose(bundle)
    entry = to_entry(bundle, diagnosis)
    store.save(bundle, to_report(bundle, diagnosis), entry)
    prune(
        store,
        limit_count=settings.bundle_limit_count,
        limit_bytes=settings.bundle_limit_bytes,
        limit_days=settings.bundle_limit_days,
    )
    return entry | {"unread": True}


def report_orphans(recordings: Path, store: BundleStore, settings: TfGuard) -> list[dict[str, Any]]:
    """Report every kernel that died while nobody watched, from its recording alone; sweep orderly ends away.

    Returns:
        Lines of the list, one per report made. A report that cannot be written is noted, and its recording stays.
    """
    made = []
    for orphan in orphans(recordings):
        try:
            made.append(publish(capture_orphan(orphan), store, settings))
        except (TfGuardError, OSError) as bad:
            orphan.give_back()
            note_problem(f"report of a kernel that died unwatched (pid {orphan.identity.pid})", bad)
            continue
        orphan.remove()
    return made
