"""Equal crashes: of the same notebook, with the same cause, each within an hour of the one before. A list shows them as one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

PAUSE_SECONDS = 3600.0


class Crash(NamedTuple):
    """What decides whether two crashes are equal.

    Attributes:
        id: Of its report.
        kind: As :func:`kind_of` returns it.
        died: Unix seconds.
    """

    id: str
    kind: Hashable
    died: float


def kind_of(entry: Mapping[str, Any]) -> Hashable:
    """What equal crashes have in common; None for a crash of unknown notebook and kernel, which equals no other.

    Args:
        entry: Its line in the list.
    """
    whose = str(entry.get("notebook_path") or entry.get("kernel_id") or "")
    alive = bool(entry.get("kernel_alive"))
    return (whose, str(entry.get("cause")), alive) if whose else None


def runs(crashes: Iterable[Crash]) -> list[list[Crash]]:
    """Runs of equal crashes.

    Args:
        crashes: Newest first, and so are the runs, by their newest crash, and the crashes in each.
    """
    found: list[list[Crash]] = []
    latest: dict[Hashable, list[Crash]] = {}
    for crash in crashes:
        run = None if crash.kind is None else latest.get(crash.kind)
        if run is not None and run[-1].died - crash.died <= PAUSE_SECONDS:
            run.append(crash)
        else:
            found.append([crash])
            latest[crash.kind] = found[-1]
    return found


def folded(entries: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The newest of each run of equal crashes, with the others of its run.

    Args:
        entries: As :meth:`~.bundle.BundleStore.entries` returns them.
    """
    others: dict[str, list[dict[str, Any]]] = {}
    newest = []
    for entry in entries:
        if entry["same_as"] is None:
            newest.append(entry)
        else:
            others.setdefault(entry["same_as"], []).append(entry)
    return [(entry, others.get(entry["id"], [])) for entry in newest]
