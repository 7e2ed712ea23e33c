"""Equal crashes: of the same notebook, with the same cause, each within an hour of the one before. A list shows them as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PAUSE_SECONDS = 3600.0

Entry = dict[str, Any]


def with_same_as(entries: Iterable[tuple[Entry, float]]) -> list[Entry]:
    """The list's lines, each with ``same_as``: the id of the newest of a run of equal crashes; None for that one itself.

    A crash of unknown notebook and kernel equals no other.

    Args:
        entries: Newest first, each with the Unix seconds of the death.
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
    """The newest of each run of equal crashes, with the others of its run.

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
