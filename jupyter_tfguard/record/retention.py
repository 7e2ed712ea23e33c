"""What is thrown away, and when: count, bytes or days, whichever is reached first.

Several processes may prune, write and read at the same time: a server, ``jupyter tfguard why``, the next kernel. Recordings
are not touched here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ..errors import BundleNotFound, FolderUnusable, RecordUnreadable
from .bundle import STAMP_LENGTH, BundleStore, died_of
from .equal import Crash, kind_of, runs
from .folders import remove_folder
from .identity import ProcessIdentity

# A bundle from later than this was made while the clock was wrong: it does not push newer ones out.
_CLOCK_MARGIN_SECONDS = 86400.0
_LEFTOVER_SECONDS = 3600.0
# Of a run of equal crashes these are kept longest, and the first one. Jupyter restarts a kernel five times by itself.
_NEWEST_OF_RUN = 5


@dataclass(frozen=True)
class _Known:
    """Of a bundle: it never changes, so this is read once. ``died_at`` is more exact than the id."""

    size_bytes: int
    died_at: str
    kind: Hashable


class Retention:
    """Keeps a store within its limits. One for each store that is written to often: it remembers what it has seen.

    Args:
        store: All reports.
        limit_count: Bundles kept at most.
        limit_bytes: Bytes of bundles kept at most.
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

    def prune(self) -> list[str]:
        """Remove what is over a limit: first the middle of runs of equal crashes, then the oldest.

        The newest unread bundle always stays.

        Returns:
            Ids of the bundles that this call removed; what another process removed is not among them.
        """
        now = time.time()
        self._sweep_leftovers(now)
        known = self._known
        self._known = {found: known.get(found) or self._look(found) for found in self._store.ids()}
        ids = sorted(self._known, key=lambda found: self._order(found, now), reverse=True)
        over = self._over_a_limit(ids, now)
        if not over:
            return []
        protected = next((found for found in ids if self._store.is_unread(found)), None)
        return [found for found in over if found != protected and self._remove(found)]

    def _look(self, bundle_id: str) -> _Known:
        entry: dict[str, Any] = {}
        with contextlib.suppress(BundleNotFound, RecordUnreadable):
            entry = self._store.entry(bundle_id)
        size = self._store.size_bytes(bundle_id)
        return _Known(size, str(entry.get("died_at", "")), kind_of(entry))

    def _order(self, bundle_id: str, now: float) -> tuple[bool, str, str]:
        """Sorts by the time of death; a time that cannot be comes before all others."""
        possible = 0 < died_of(bundle_id) < now + _CLOCK_MARGIN_SECONDS
        return (possible, bundle_id[:STAMP_LENGTH], self._known[bundle_id].died_at)

    def _over_a_limit(self, ids: list[str], now: float) -> list[str]:
        """Ids of bundles that are too old, or do not fit. `ids`: newest first."""
        crashes = (Crash(found, self._known[found].kind, died_of(found)) for found in ids)
        middle = {crash.id for run in runs(crashes) for crash in run[_NEWEST_OF_RUN:-1]}
        over = []
        total = 0
        for position, bundle_id in enumerate(sorted(ids, key=lambda found: found in middle)):
            total += self._known[bundle_id].size_bytes
            too_old = now - died_of(bundle_id) > self._limit_seconds
            if too_old or position >= self._limit_count or total > self._limit_bytes:
                over.append(bundle_id)
        return over

    def _remove(self, bundle_id: str) -> bool:
        """True if this process removed it. Where it cannot be deleted, the next prune tries again."""
        try:
            return self._store.remove(bundle_id)
        except (BundleNotFound, FolderUnusable, OSError):
            return False

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
