"""The kernel's journal as a diagnosis reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .typed import float_of

if TYPE_CHECKING:
    from .evidence import Evidence


def journal(seen: Evidence) -> list[dict[str, Any]]:
    """The events of the kernel's journal, which may be forged: dictionaries, in order."""
    found = (seen.kernel or {}).get("events")
    events = [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []
    if seen.hang is not None and seen.asked_to_end:
        # A restart begins with an interrupt, which ends the cell: what counts is how it stood still.
        events = [e for e in events if (float_of(e.get("t")) or 0) <= seen.hang.noticed]
    return events
