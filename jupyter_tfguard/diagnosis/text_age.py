"""Whether native text belongs to the end of its kernel, or is older: what a kernel lived on after was not its end.

Told from when it was written, as the file system says, and from the time that a record carries. Unknown is not old.
"""

from __future__ import annotations

import calendar
import re
import time

from .observed import Observed
from .typed import dict_of, number_of

# Between the last word and the end: exit handlers, and memory or a core file of many GiB that has to go first.
_LATE_SECONDS = 60.0
# Between the last word and the stacks that faulthandler writes as soon as a fatal signal comes.
_FAULT_SECONDS = 2.0
# Clocks of file systems tick every few milliseconds.
_TICK_SECONDS = 0.05
# "I0000 00:00:1700000000.123456": the time of a record, Unix seconds, where its day is 0000.
_UNIX_TIME = re.compile(r"[IWEF]0000 00:00:(\d{9,12}(?:\.\d{1,6})?)")
# "2026-11-21 02:14:05.123456: F ...": the same on the clock on the wall, whatever its zone.
_WALL_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d{1,9})?: [IWEF] ")
# Zones lie a multiple of this apart, and no more than 26 hours.
_ZONE_SECONDS = 900.0
_FARTHEST_SECONDS = 26 * 3600.0


def native_text_is_old(seen: Observed) -> bool:
    """True when all native text was written before the last cell began, or long before the end."""
    kernel = dict_of(seen.kernel)
    written = number_of(kernel.get("stderr_time"))
    if written is None:
        return False
    cells = [event.get("t") for event in seen.journal if event.get("kind") == "cell_start"]
    began = number_of(cells[-1]) if cells else None
    if began is not None and written < began - _TICK_SECONDS:
        return True
    crashed = number_of(kernel.get("fault_time"))
    if seen.fault_title is not None and crashed is not None:
        return written < crashed - _FAULT_SECONDS
    return bool(seen.died) and written < seen.died - _LATE_SECONDS


def record_is_old(text: str, died: float) -> bool:
    """True for a record whose own time is not that of the end, Unix seconds."""
    if not died:
        return False
    if found := _UNIX_TIME.search(text[:80]):
        return abs(died - float(found[1])) > _LATE_SECONDS
    if (found := _WALL_TIME.search(text[:80])) is None:
        return False
    try:
        ago = died - calendar.timegm(time.strptime(found[1], "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return False
    beside = (ago + _ZONE_SECONDS / 2) % _ZONE_SECONDS - _ZONE_SECONDS / 2
    return abs(ago) > _FARTHEST_SECONDS or abs(beside) > _LATE_SECONDS
