"""Memory that can still be used before the system kills a process: the minimum over the machine and each limited group.

File cache and swap count as available: the system uses both before it kills. Limits of the process (``ulimit -v``) are
ignored: they make an allocation fail, but kill nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import SourceUnavailable
from ..procfs import colon_lines, read_text
from ..units import parse_kib
from .groups import MemoryGroup, memory_groups
from .limits import Limit, LimitKind


class Headroom(NamedTuple):
    """Bytes that can still be used, the limit that they belong to, and the smallest limit, of which the levels of a stop are parts."""

    left_bytes: int
    limit: Limit
    smallest_bytes: int


def headroom(groups: Sequence[MemoryGroup], *, root: str = "") -> Headroom:
    """What a process in these groups can still use; takes less than a millisecond.

    Args:
        groups: Its memory groups, innermost first.
        root: Prefix of ``/proc``.

    Raises:
        SourceUnavailable: This system has no memory figures.
    """
    fields = colon_lines(read_text(f"{root}/proc/meminfo"))
    try:
        total, free = (int(parse_kib(fields[name])) for name in ("MemTotal", "MemAvailable"))
        swap_bytes = int(parse_kib(fields.get("SwapFree", "0 kB")))
    except (KeyError, ValueError) as bad:
        raise SourceUnavailable("The available memory of this machine is unknown.") from bad
    left = [(free + swap_bytes, Limit(total, LimitKind.HOST))]
    for group in groups:
        if (limit := group.limit_bytes()) is not None and limit < total:
            left.append((_left(group, limit, swap_bytes), Limit(limit, LimitKind.CGROUP)))
    smallest = min(limit.size_bytes for _, limit in left)
    return Headroom(*min(left, key=lambda pair: pair[0]), smallest)


def binding_now() -> Headroom:
    """What this process can still use; takes less than a millisecond.

    Raises:
        SourceUnavailable: This system has no memory figures.
    """
    groups: Sequence[MemoryGroup] = ()
    with contextlib.suppress(SourceUnavailable):
        groups = memory_groups(os.getpid())
    return headroom(groups)


def _left(group: MemoryGroup, limit: int, swap_bytes: int) -> int:
    """Bytes left in a group; `swap_bytes`: free swap of the machine."""
    cache = group.reclaimable_bytes() or 0
    left = limit - (group.used_bytes() or 0) + cache
    swap_limit, swap_used = group.swap_limit_bytes(), group.swap_used_bytes()
    if not swap_bytes or swap_used is None:
        return left
    if group.version == 1:  # counts memory and swap together
        both = swap_bytes + left if swap_limit is None else swap_limit - swap_used + cache
        return max(left, min(left + swap_bytes, both))
    allowed = swap_bytes if swap_limit is None else swap_limit - swap_used
    return left + max(0, min(swap_bytes, allowed))
