"""What a bundle is told of the deaths before it, from the reports that are kept: cause, signal, time, whose."""

from __future__ import annotations

import contextlib
from typing import Any

from ..errors import BundleNotFound, RecordUnreadable
from ..record.bundle import STAMP_LENGTH, BundleStore, died_of, stamp
from ..record.counted import kernel_key, short_hash

WITHIN_SECONDS = 86400.0
LIMIT = 30

Json = dict[str, Any]


def earlier_deaths(store: BundleStore, identity: Json) -> list[Json]:
    """The newest deaths of the last day, at most `LIMIT`, newest first.

    Those of a kernel in a loop that have no report of their own are one line for each cause, with their ``count``.

    Args:
        store: The reports.
        identity: Whose death this is.
    """
    died = float(identity["died"])
    first, last = stamp(died - WITHIN_SECONDS), stamp(died)
    found: list[Json | None] = []
    for bundle_id in store.ids():
        if len(found) >= LIMIT:
            break
        if first <= bundle_id[:STAMP_LENGTH] <= last:
            with contextlib.suppress(BundleNotFound, RecordUnreadable):
                found.append(_of_entry(store.entry(bundle_id), died_of(bundle_id)))
    own = short_hash(kernel_key(identity))
    for group_id in store.groups.ids():
        if group_id.endswith(own):
            with contextlib.suppress(BundleNotFound, RecordUnreadable):
                group = store.groups.group(group_id)
                if died - WITHIN_SECONDS <= group.last <= died:
                    whose = {"kernel_id": group.kernel_id, "notebook_path": group.notebook_path}
                    found += [
                        {"cause": c.cause, "signal": None, "died": group.last, "count": c.count}
                        | whose
                        for c in group.causes
                    ]
    return sorted((death for death in found if death is not None), key=lambda death: -death["died"])


def _of_entry(entry: Json, died: float) -> Json | None:
    if entry.get("kernel_alive"):
        return None
    named = ("cause", "signal", "kernel_id", "notebook_path")
    return {name: entry.get(name) for name in named} | {"died": died, "count": 1}
