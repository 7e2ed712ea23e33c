"""The kernel's memory grew steadily, over epochs, fits or runs of a cell: a leak, which explains how it reached the limit.

Other rules explain the end itself. This finding is shown in addition, unless nothing else is known about an end near the
limit. Not counted: growth within one step, the warm-up of the first epoch, a cache that levels off, one jump (see
:mod:`~..growth`).
"""

from __future__ import annotations

from ...units import human_bytes
from ..evidence import Evidence
from ..finding import Confidence, Finding
from ..leak import Leak, Per, room_bytes
from ..memory import near_limit, peak_fact
from ..memory_advice import leak_advice
from ..rule import rule

_FULL_FRACTION = 0.05


@rule("host_leak", needs=("kernel.recording",))
def host_leak(seen: Evidence) -> Finding | None:
    """The memory of the kernel grew steadily until the end: over epochs, calls of `fit`, or runs of a cell.

    Samples are compared at the same point of each epoch, fit or run. Growth within one step, the warm-up of the first epoch, a
    cache that levels off and a single jump do not count. The finding appears beside the cause of the end. It comes first if
    nothing else is known of an end near the memory limit.
    """
    found = seen.growth
    if found is None or seen.pasted is not None or seen.kernel_alive:
        return None
    counted = found.per in (Per.EPOCH, Per.FIT)
    peak = peak_fact(seen)
    nothing_known = seen.exit_signal is None and seen.exit_code is None and seen.end_reason is None
    return Finding(
        Confidence.LIKELY if counted else Confidence.POSSIBLE,
        title=f"The kernel's memory grew steadily over {found.over}: {found.rate}{_outlook(seen, found)}.",
        short_title=f"Memory grew by {human_bytes(found.trend.slope)} {found.per.value}",
        because=(found.fact, *((peak,) if peak else ())),
        advice=leak_advice(seen, found),
        chips=(f"+{human_bytes(found.trend.slope)} {found.per.value}",),
        beside=not (nothing_known and near_limit(seen)),
        mechanism=f"The kernel's memory grew by {human_bytes(found.trend.slope)} {found.per.value}",
    )


def _outlook(seen: Evidence, found: Leak) -> str:
    limit = seen.memory_limit()
    if limit is None:
        return ""
    room = room_bytes(seen, limit)
    if room < _FULL_FRACTION * limit.size_bytes or near_limit(seen):
        return f", and reached the limit of {limit.text()}"
    left = found.left(room)
    return f"; the limit of {limit.text()} would be reached in {left}" if left else ""
