"""What is thrown away, and when: count, bytes or days, whichever is reached first."""

from __future__ import annotations

import calendar
import time

from .bundle import BundleStore


def prune(
    store: BundleStore, *, limit_count: int, limit_bytes: int, limit_days: float
) -> list[str]:
    """Remove bundles over a limit, oldest first; the newest unread one always stays.

    Returns:
        The ids removed.
    """
    ids = store.ids()  # newest first
    unread = [bundle_id for bundle_id in ids if not (store.root / bundle_id / "read").exists()]
    protected = unread[:1]
    removed = []
    total = 0
    for position, bundle_id in enumerate(ids):
        total += store.size_bytes(bundle_id)
        too_old = time.time() - _died(bundle_id) > limit_days * 86400
        if (
            position >= limit_count or total > limit_bytes or too_old
        ) and bundle_id not in protected:
            store.remove(bundle_id)
            removed.append(bundle_id)
    return removed


def _died(bundle_id: str) -> float:
    day, clock, *_ = bundle_id.split("-")
    return calendar.timegm(time.strptime(day + clock, "%Y%m%d%H%M%S"))
