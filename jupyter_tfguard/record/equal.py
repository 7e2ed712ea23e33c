"""Groups equal crashes: same notebook, same cause, each within an hour of the previous one. A list shows one entry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PAUSE_SECONDS = 3600.0

Entry = dict[str, Any]


def with_same_as(entries: Iterable[tuple[Entry, float]]) -> list[Entry]:
    """The entries, each with ``same_as``: the id of the newest in its run of equal crashes; None for the newest.

    A crash of an unknown notebook and kernel is equal to no other.

    Args:
        entries: Newest first, each with the Unix seconds of the crash.
    """
    latest: dict[tuple[str, str, bool], tuple[str, float]] = {}
    found = []
    for entry, died in entries:
        whose = str(entry.get("notebook_path") or entry.get("kernel_id") or "")
        kind = (whose, str(entry.get("cause")), bool(entry.get("kernel_alive")))
        newest, later = latest.get(kind, ("", 0.0))
        same = bool(whose and newest) and later - died <= PAUSE_SECONDS
        latest[kind] = (newest if same else entry["id"], died)
        found.append(entry | {"same_as": newest if same else None})
    return found


def folded(entries: Iterable[Entry]) -> list[tuple[Entry, list[Entry]]]:
    """The newest crash of each run of equal crashes, with the others of that run.

    Args:
        entries: As :meth:`~.bundle.BundleStore.entries` returns them.
    """
    others: dict[str, list[Entry]] = {}
    newest = []
    for entry in entries:
        if entry["same_as"] is None:
            newest.append(entry)
        else:
            others.setdefault(entry["same_as"], []).append(entry)
    return [(entry, others.get(entry["id"], [])) for entry in newest]
