"""Which of the driver's faults count for a death, and their rows in the catalogue."""

from __future__ import annotations

import functools
from typing import Any

from .catalog import table
from .evidence import Evidence
from .finding import Fact, Source, quoted
from .gpus import Gpu
from .os_log import Xid, runs_python
from .verdict import gave_up

HARDWARE = "hardware"
SOFTWARE = "software"


@functools.cache
def _rows() -> dict[int, dict[str, Any]]:
    return {row["xid"]: row for row in table("xid")["xid"]}


def xid_row(number: int) -> dict[str, Any] | None:
    """The catalogue's row; None for a number that is not in it."""
    return _rows().get(number)


def first_xid(seen: Evidence, blame: str) -> Xid | None:
    """The first fault of this kind that counts for this crash.

    A fault counts only if the kernel itself caused its end. The driver must attribute the fault to this kernel, or the
    fault must affect the whole card. A pasted log does not say which process it is about: there, any Python process
    counts. Faults that only report clean-up are skipped.
    """
    if seen.pasted is None and not gave_up(seen):
        return None
    for fault in seen.system_log.xids:
        row = xid_row(fault.number)
        if row is None or row["blame"] == "cleanup":
            continue
        if row["blame"] != blame:
            return None  # the first fault of a burst is its cause
        if _on_another_card(seen, fault):
            continue
        if row["whole_card"] or _is_ours(seen, fault):
            return fault
    return None


def xid_fact(fault: Xid) -> Fact:
    """The fact that the driver reported a fault: with the line of the system log, or from an event, which has no line."""
    if fault.is_event:
        return Fact(Source.SERVER, fault.line)
    return quoted(f"The NVIDIA driver reported Xid {fault.number} on GPU {fault.place}", fault.line)


def _is_ours(seen: Evidence, fault: Xid) -> bool:
    if seen.pasted is not None:
        return not fault.name or runs_python(fault.name)
    if fault.pid is None and fault.is_event:
        # An event names only the card. It belongs to this kernel if no other process used that card.
        gpu = card_of(seen, fault)
        processes = gpu.processes if gpu is not None else None
        return bool(processes) and all(
            p.is_of(seen.pid, seen.identity.get("kernel_id")) for p in processes or ()
        )
    return fault.pid is not None and fault.pid == seen.pid


def card_of(seen: Evidence, fault: Xid) -> Gpu | None:
    """The card that a fault is about; None when it is not in the bundle."""
    return next(
        (gpu for gpu in seen.gpus if gpu.is_at(fault.place) or gpu.title == fault.place), None
    )


def _on_another_card(seen: Evidence, fault: Xid) -> bool:
    """True if the fault is on a card that this kernel was not observed to use, as far as that is visible."""
    kernel_id = seen.identity.get("kernel_id")
    # A card and its MIG instances share one address.
    there = [gpu for gpu in seen.gpus if gpu.is_at(fault.place) or gpu.title == fault.place]
    held = [gpu.holds(seen.pid, kernel_id) for gpu in there]
    if not there or True in held:
        return False
    return None not in held or any(gpu.holds(seen.pid, kernel_id) for gpu in seen.gpus)
