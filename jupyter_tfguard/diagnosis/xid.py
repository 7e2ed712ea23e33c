"""Which of the driver's faults count for a death, and what the catalogue says of them."""

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
    """The first fault of this kind that counts for this death.

    It counts for an end of the kernel's own making, when the driver puts it down to this kernel, or when it takes the whole
    card. A pasted log does not say which
    process it is about: there a process that runs Python counts. Faults that only report clean-up are passed over.
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
    """What the driver said: as the system log has it, or as an event, which has no line."""
    if fault.is_event:
        return Fact(Source.SERVER, fault.line)
    return quoted(f"The NVIDIA driver reported Xid {fault.number} on GPU {fault.place}", fault.line)


def _is_ours(seen: Evidence, fault: Xid) -> bool:
    if seen.pasted is not None:
        return not fault.name or runs_python(fault.name)
    if fault.pid is None and fault.is_event:
        # An event knows only the card: it is this kernel's where nobody else worked there.
        gpu = card_of(seen, fault)
        processes = gpu.processes if gpu is not None else None
        return bool(processes) and all(
            p.is_of(seen.pid, seen.identity.get("kernel_id")) for p in processes or ()
        )
    return fault.pid is not None and fault.pid == seen.pid


def card_of(seen: Evidence, fault: Xid) -> Gpu | None:
    """The card that a fault is about; None when the bundle does not know it."""
    return next(
        (gpu for gpu in seen.gpus if gpu.is_at(fault.place) or gpu.title == fault.place), None
    )


def _on_another_card(seen: Evidence, fault: Xid) -> bool:
    """True for a card that this kernel was not seen at work on, as far as that could be seen."""
    kernel_id = seen.identity.get("kernel_id")
    # A divided card and its instances have one address.
    there = [gpu for gpu in seen.gpus if gpu.is_at(fault.place) or gpu.title == fault.place]
    held = [gpu.holds(seen.pid, kernel_id) for gpu in there]
    if not there or True in held:
        return False
    return None not in held or any(gpu.holds(seen.pid, kernel_id) for gpu in seen.gpus)
