"""What is thrown away, and when: count, bytes or days, whichever is reached first.

Several processes may prune, write and read at the same time: a server, ``jupyter tfguard why``, the next kernel. Recordings
are not touched here.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from ..errors import BundleNotFound, FolderUnusable, RecordUnreadable
from .bundle import STAMP_LENGTH, BundleStore, died_of
from .folders import remove_folder
from .identity import ProcessIdentity

# A bundle from later than this was made while the clock was wrong: it does not push newer ones out.
_CLOCK_MARGIN_SECONDS = 86400.0
_LEFTOVER_SECONDS = 3600.0


@dataclass(frozen=True)
class Pruned:
    """A bundle that made room.

    Attributes:
        bundle_id: Its id.
        too_old: Its days were over; False: there was no room for it.
        entry: Its line in the list; None when it could not be read.
    """

    bundle_id: str
    too_old: bool
    entry: dict[str, object] | None


@dataclass(frozen=True)
class _Known:
    """Of a bundle: it never changes, so this is read once. ``died_at`` tells more exactly than the id."""

    size_bytes: int
    died_at: str


class Retention:
    """Keeps a store within its limits. One for each store that is written to often: it remembers what it has seen.

    Args:
        store: All reports.
        limit_count: Bundles kept at most; of groups the same.
        limit_bytes: Bytes of bundles and groups kept at most.
        limit_days: Days since the death.
    """

    def __init__(
        self, store: BundleStore, *, limit_count: int, limit_bytes: int, limit_days: float
    ) -> None:
        self._store = store
        self._limit_count = limit_count
        self._limit_bytes = limit_bytes
        self._limit_seconds = limit_days * 86400
        self._known: dict[str, _Known] = {}
        self._leftovers_next = 0.0

    def prune(self) -> list[Pruned]:
        """Remove what is over a limit, oldest first; the newest unread bundle always stays.

        Returns:
            The bundles that this call removed; what another process removed is not among them.
        """
        now = time.time()
        self._sweep_leftovers(now)
        self._prune_groups(now)
        known = self._known
        self._known = {found: known.get(found) or self._look(found) for found in self._store.ids()}
        ids = sorted(self._known, key=lambda found: self._order(found, now), reverse=True)
        over = self._over_a_limit(ids, now)
        if not over:
            return []
        protected = next((found for found in ids if self._store.is_unread(found)), None)
        removed = []
        for bundle_id, too_old in over:
            if bundle_id != protected and (pruned := self._remove(bundle_id, too_old)):
                removed.append(pruned)
        return removed

    def _look(self, bundle_id: str) -> _Known:
        died_at = ""
        with contextlib.suppress(BundleNotFound, RecordUnreadable):
            died_at = str(self._store.entry(bundle_id).get("died_at"))
        return _Known(self._store.size_bytes(bundle_id), died_at)

    def _order(self, bundle_id: str, now: float) -> tuple[bool, str, str]:
        """Sorts by the time of death; a time that cannot be comes before all others."""
        possible = 0 < died_of(bundle_id) < now + _CLOCK_MARGIN_SECONDS
        return (possible, bundle_id[:STAMP_LENGTH], self._known[bundle_id].died_at)

    def _over_a_limit(self, ids: list[str], now: float) -> list[tuple[str, bool]]:
        over = []
        total = self._store.groups.size_bytes()
        for position, bundle_id in enumerate(ids):
            total += self._known[bundle_id].size_bytes
            too_old = now - died_of(bundle_id) > self._limit_seconds
            if too_old or position >= self._limit_count or total > self._limit_bytes:
                over.append((bundle_id, too_old))
        return over

    def _remove(self, bundle_id: str, too_old: bool) -> Pruned | None:
        entry = None
        with contextlib.suppress(Exception):  # whatever is wrong with it, it goes
            entry = self._store.entry(bundle_id)
        try:
            removed = self._store.remove(bundle_id)
        except (BundleNotFound, FolderUnusable, OSError):
            return None  # gone already, or it cannot be deleted: the next prune tries again
        return Pruned(bundle_id, too_old, entry) if removed else None

    def _prune_groups(self, now: float) -> None:
        groups = self._store.groups
        ids = sorted(groups.ids(), key=groups.last_death, reverse=True)
        for position, group_id in enumerate(ids):
            # One more than bundles: deaths of many kernels have a group beside those of single ones.
            too_many = position > self._limit_count
            if too_many or now - groups.last_death(group_id) > self._limit_seconds:
                with contextlib.suppress(BundleNotFound, FolderUnusable, OSError):
                    groups.remove(group_id)

    def _sweep_leftovers(self, now: float) -> None:
        if now >= self._leftovers_next:
            self._leftovers_next = now + _LEFTOVER_SECONDS
            sweep_leftovers(self._store)


def sweep_leftovers(store: BundleStore, *, patience_seconds: float = 60.0) -> None:
    """Delete folders that a killed process left half written or half removed.

    Args:
        store: All reports.
        patience_seconds: Their age at least: a maker that does not run here may run on another machine that shares the
            folder.
    """
    for name in store.leftovers():
        maker = name.rsplit(".", 1)[-1].partition("-")[0]
        alive = maker.isdigit() and ProcessIdentity.of(int(maker)) is not None
        patience = _LEFTOVER_SECONDS if alive else patience_seconds
        path = store.root / name
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime >= patience:
                remove_folder(path)
