"""The crashes before this one, from the reports that are kept: cause, signal, time, kernel and notebook."""

from __future__ import annotations

import contextlib
from typing import Any

from ..errors import BundleNotFound, RecordUnreadable
from ..record.bundle import STAMP_LENGTH, BundleStore, died_of, stamp

WITHIN_SECONDS = 86400.0
LIMIT = 30

Json = dict[str, Any]


def earlier_deaths(store: BundleStore, died: float) -> list[Json]:
    """The crashes of the day before `died` (Unix seconds), at most `LIMIT`, newest first."""
    first, last = stamp(died - WITHIN_SECONDS), stamp(died)
    found: list[Json] = []
    for bundle_id in store.ids():
        if len(found) >= LIMIT:
            break
        if first <= bundle_id[:STAMP_LENGTH] <= last:
            with contextlib.suppress(BundleNotFound, RecordUnreadable):
                entry = store.entry(bundle_id)
                if not entry.get("kernel_alive"):
                    named = ("cause", "signal", "kernel_id", "notebook_path")
                    found.append({n: entry.get(n) for n in named} | {"died": died_of(bundle_id)})
    return sorted(found, key=lambda death: -death["died"])
