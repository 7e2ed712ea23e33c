"""The one way from a bundle to a report: find the cause, save both, keep within the limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config import TfGuard
from ..diagnosis.diagnose import diagnose
from ..postmortem.capture import capture_orphan
from ..postmortem.detect import InHand, each_orphan, nobodys
from ..record.bundle import BundleStore
from ..record.retention import Retention
from ..shield import note_problem
from .earlier import earlier_deaths
from .wire import to_entry_and_report

Json = dict[str, Any]


class Publisher:
    """Keeps reports. One for each process that makes many; several processes may work on one store.

    Args:
        store: Where reports are kept.
        settings: What to keep of them.
    """

    def __init__(self, store: BundleStore, settings: TfGuard) -> None:
        self._store = store
        self._retention = Retention(
            store,
            limit_count=settings.bundle_limit_count,
            limit_bytes=settings.bundle_limit_bytes,
            limit_days=settings.bundle_limit_days,
        )

    def publish(self, bundle: Json) -> Json:
        """Save the bundle with its report.

        Returns:
            Its line in the list.

        Raises:
            FolderUnusable, OSError: It could not be written; nothing half-written is left.
        """
        bundle["earlier_deaths"] = earlier_deaths(self._store, float(bundle["identity"]["died"]))
        entry, report = to_entry_and_report(bundle, diagnose(bundle))
        self._store.save(bundle, report, entry)
        self._retention.prune()
        return entry | {"unread": True}


def report_orphans(
    recordings: Path,
    store: BundleStore,
    settings: TfGuard,
    *,
    copies: Path | None = None,
    publisher: Publisher | None = None,
    in_hand: InHand = nobodys,
) -> list[Json]:
    """Report every kernel that died while nobody watched, from its recording alone; sweep orderly ends away.

    Args:
        recordings: Where the kernels of this machine record.
        store: Where reports are kept.
        settings: What to keep of them.
        copies: Where watchers copy recordings to; None when they do not.
        publisher: The one that this process has already, if any.
        in_hand: As of :func:`~..postmortem.detect.each_orphan`.

    Returns:
        One line per death, as :meth:`Publisher.publish` gives it. A death that cannot be written is noted, and its
        recording stays.
    """
    publisher = publisher or Publisher(store, settings)
    made: list[Json] = []
    for orphan in each_orphan(recordings, copies, in_hand):
        try:
            made.append(publisher.publish(capture_orphan(orphan)))
        except (
            Exception
        ) as bad:  # a full disk, or a recording that is damaged: continue with the others
            orphan.give_back()
            note_problem(f"report of a kernel that died unwatched (pid {orphan.identity.pid})", bad)
            continue
        orphan.remove()
    return made
