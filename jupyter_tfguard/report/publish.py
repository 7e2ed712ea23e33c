"""The one way from a bundle to what is kept of it: a report of its own, or one more in a group that is counted.

A kernel that dies again and again has at most `OWN_REPORTS_LIMIT` reports in `WINDOW_SECONDS`; its other deaths are counted.
A report that has to make room within an hour of its death is counted too, in the group of many kernels, so that the list
tells of every death of a bad day.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

from ..config import TfGuard
from ..diagnosis.diagnose import diagnose
from ..errors import BundleNotFound, FolderUnusable, RecordUnreadable
from ..postmortem.capture import add_aftermath, capture_recording
from ..postmortem.detect import InHand, Orphan, each_orphan, nobodys
from ..record.bundle import STAMP_LENGTH, BundleStore, died_of, stamp
from ..record.counted import Death, Group, kernel_key
from ..record.exclusive import exclusive
from ..record.folders import PrivateFolder
from ..record.groups import GAP_SECONDS
from ..record.retention import Pruned, Retention
from ..shield import note_problem
from .earlier import earlier_deaths
from .grouped import counted_death, death_of_entry, render_group
from .wire import to_entry, to_entry_and_report

OWN_REPORTS_LIMIT = 5
WINDOW_SECONDS = 600.0

Json = dict[str, Any]


class Publisher:
    """Keeps reports. One for each process that makes many; several processes may work on one store.

    Args:
        store: Where reports are kept.
        settings: What to keep of them.
    """

    def __init__(self, store: BundleStore, settings: TfGuard) -> None:
        self._store = store
        self._limit_count = settings.bundle_limit_count
        self._retention = Retention(
            store,
            limit_count=settings.bundle_limit_count,
            limit_bytes=settings.bundle_limit_bytes,
            limit_days=settings.bundle_limit_days,
        )
        # Whose report each recent bundle is, and when it died: also of those that made room since.
        self._recent: dict[str, tuple[str, float]] = {}
        self._lock = threading.RLock()

    def has_share(self, kernel_key: str, died: float) -> bool:
        """True when this kernel has had fewer than `OWN_REPORTS_LIMIT` reports around this time.

        Args:
            kernel_key: As :attr:`~..record.groups.Death.kernel_key`.
            died: Unix seconds.
        """
        with self._lock:
            self._look_at_store(died)
            near = [k for k, when in self._recent.values() if abs(when - died) < WINDOW_SECONDS]
            return near.count(kernel_key) < OWN_REPORTS_LIMIT

    def publish(self, bundle: Json) -> Json:
        """Keep the bundle with its report; or count it, when its kernel has had its share of reports.

        Returns:
            The line in the list. When it was counted: that of this very death, with the group's id and numbers.

        Raises:
            FolderUnusable, OSError: It could not be written; nothing half-written is left.
        """
        bundle["earlier_deaths"] = earlier_deaths(self._store, bundle["identity"])
        diagnosis = diagnose(bundle)
        death = counted_death(bundle, diagnosis)
        entry, report = to_entry_and_report(bundle, diagnosis)
        with self._lock:
            with PrivateFolder(self._store.root) as folder, exclusive(folder):
                saved = self.has_share(death.kernel_key, death.died)
                if saved:
                    self._store.save(bundle, report, entry)
                    self._recent[entry["id"]] = (death.kernel_key, death.died)
            if not saved:
                return entry | _as_counted(self._count([death], one_kernel=True))
            made_room = self._room_made(death, entry["id"])
        return entry | {"unread": True} | (_as_counted(made_room) if made_room else {})

    def count(self, bundle: Json) -> Json:
        """Count a death that gets no report of its own. Returns and raises as :meth:`publish`."""
        diagnosis = diagnose(bundle)
        death = counted_death(bundle, diagnosis)
        with self._lock:
            loops = not self.has_share(death.kernel_key, death.died)
            group = self._count([death], one_kernel=loops)
        return to_entry(bundle, diagnosis) | _as_counted(group)

    def _count(self, deaths: list[Death], *, one_kernel: bool) -> Group:
        return self._store.groups.count(
            deaths, render_group, one_kernel=one_kernel, limit_count=self._limit_count
        )

    def _room_made(self, death: Death, bundle_id: str) -> Group | None:
        """As :meth:`_make_room`; where others that made room cannot be counted, this report stands all the same."""
        try:
            return self._make_room(death, bundle_id)
        except (FolderUnusable, OSError) as bad:
            if bundle_id not in self._store.ids():
                raise
            note_problem("counting deaths whose reports made room", bad)
            return None

    def _make_room(self, death: Death, bundle_id: str) -> Group | None:
        """Keep within the limits. Returns the group that `bundle_id` itself went into, if it had to go at once."""
        went = [p for p in self._retention.prune() if p.entry is not None and not p.too_old]
        at = None
        for alive in (False, True):
            deaths = sorted(
                (d for p in went if (d := self._to_count(p, death, bundle_id)) is not None),
                key=lambda d: d.died,
            )
            deaths = [d for d in deaths if d.kernel_alive is alive]
            if deaths:
                group = self._count(deaths, one_kernel=False)
                at = group if death.kernel_alive is alive else at
        return at if any(p.bundle_id == bundle_id for p in went) else None

    def _to_count(self, pruned: Pruned, newest: Death, bundle_id: str) -> Death | None:
        assert pruned.entry is not None
        died = died_of(pruned.bundle_id)
        if pruned.bundle_id != bundle_id and abs(newest.died - died) > GAP_SECONDS:
            return None  # it had its time in the list
        return death_of_entry(pruned.entry, died)

    def _look_at_store(self, died: float) -> None:
        """Learn of the reports around this time that other processes made, or this one before its start."""
        first, last = (stamp(died + step * WINDOW_SECONDS) for step in (-1, 1))
        for bundle_id in self._store.ids():
            if bundle_id in self._recent or not first <= bundle_id[:STAMP_LENGTH] <= last:
                continue
            with contextlib.suppress(BundleNotFound, RecordUnreadable):
                known = death_of_entry(self._store.entry(bundle_id), died_of(bundle_id))
                self._recent[bundle_id] = (known.kernel_key, known.died)
        if len(self._recent) > 20 * self._limit_count:
            recent = self._recent.items()
            self._recent = {i: kw for i, kw in recent if abs(kw[1] - died) < 2 * WINDOW_SECONDS}


def publish(bundle: Json, store: BundleStore, settings: TfGuard) -> Json:
    """Keep one bundle with its report. Returns and raises as :meth:`Publisher.publish`."""
    return Publisher(store, settings).publish(bundle)


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

    The newest deaths have reports, as many as are kept at most; the others are counted.

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
    told: list[Json] = []
    reports_left = settings.bundle_limit_count
    for orphan in each_orphan(recordings, copies, in_hand):
        try:
            entry = _report_orphan(orphan, publisher, with_report=reports_left > 0)
        except (
            Exception
        ) as bad:  # a full disk, or a recording that is more than we can read: the others are told
            orphan.give_back()
            note_problem(f"report of a kernel that died unwatched (pid {orphan.identity.pid})", bad)
            continue
        orphan.remove()
        reports_left -= entry["group"] is None
        told.append(entry)
    return told


def _report_orphan(orphan: Orphan, publisher: Publisher, *, with_report: bool) -> Json:
    bundle = capture_recording(orphan)
    identity = bundle["identity"]
    if not with_report or not publisher.has_share(kernel_key(identity), float(identity["died"])):
        return publisher.count(bundle)
    add_aftermath(bundle, orphan)
    return publisher.publish(bundle)


def _as_counted(group: Group) -> Json:
    """What is another in the line of a death that is told of in a group."""
    return {"id": group.id, "group": render_group(group)[0]["group"]}
