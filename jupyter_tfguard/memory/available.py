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
from ..procfs import KeptFile
from .groups import STAT, MemoryGroup, memory_groups
from .limits import Limit, LimitKind

_MEMINFO_BYTES = 2048
_STAT_BYTES = 8192
_NUMBER_BYTES = 64
_NO_LIMIT_BYTES = 1 << 62


class Headroom(NamedTuple):
    """Bytes that can still be used, the limit that they belong to, and the smallest limit, of which the levels of a stop are parts."""

    left_bytes: int
    limit: Limit
    smallest_bytes: int


class AvailableMemory:
    """Reads the available memory from files that stay open; takes tens of microseconds.

    Args:
        groups: The memory groups of this process, innermost first.
        root: Prefix of ``/proc``.

    Raises:
        SourceUnavailable: This system has no memory figures.
    """

    def __init__(self, groups: Sequence[MemoryGroup], *, root: str = "") -> None:
        self._meminfo = KeptFile(f"{root}/proc/meminfo", _MEMINFO_BYTES)
        self._groups = []
        for group in groups:
            with contextlib.suppress(SourceUnavailable):
                self._groups.append(_Group(group))
        if self.read() is None:
            raise SourceUnavailable("The available memory of this machine is unknown.")

    def read(self) -> int | None:
        """Available bytes; None if the machine's memory cannot be read."""
        found = _fields(self._meminfo.read_bytes(), b":", (b"MemAvailable", b"SwapFree"))
        if b"MemAvailable" not in found:
            return None
        swap_bytes = found.get(b"SwapFree", 0) * 1024
        left = [found[b"MemAvailable"] * 1024 + swap_bytes]
        for group in self._groups:
            with contextlib.suppress(SourceUnavailable, ValueError):
                left.append(group.left(swap_bytes))
        return min(left)

    def binding(self) -> Headroom | None:
        """What :meth:`read` returns, with the limit that it belongs to; None if the machine's memory cannot be read."""
        content = self._meminfo.read_bytes()
        found = _fields(content, b":", (b"MemTotal", b"MemAvailable", b"SwapFree"))
        if b"MemAvailable" not in found or b"MemTotal" not in found:
            return None
        swap_bytes = found.get(b"SwapFree", 0) * 1024
        machine = Limit(found[b"MemTotal"] * 1024, LimitKind.HOST)
        left = [(found[b"MemAvailable"] * 1024 + swap_bytes, machine)]
        for group in self._groups:
            with contextlib.suppress(SourceUnavailable, ValueError):
                if (limit := group.limit()) is not None and limit < machine.size_bytes:
                    left.append((group.left(swap_bytes), Limit(limit, LimitKind.CGROUP)))
        smallest = min(limit.size_bytes for _, limit in left)
        return Headroom(*min(left, key=lambda pair: pair[0]), smallest)

    def total_bytes(self) -> int:
        """The smallest limit, of the machine or a group, in bytes."""
        found = _fields(self._meminfo.read_bytes(), b":", (b"MemTotal",))
        return min(
            [found.get(b"MemTotal", _NO_LIMIT_BYTES // 1024) * 1024]
            + [limit for group in self._groups if (limit := group.limit()) is not None]
        )

    def close(self) -> None:
        """Close the file descriptors."""
        for file in (self._meminfo, *(f for group in self._groups for f in group.files)):
            file.close()


def binding_now() -> Headroom:
    """What this process can still use; takes less than a millisecond.

    Raises:
        SourceUnavailable: This system has no memory figures.
    """
    groups: Sequence[MemoryGroup] = ()
    with contextlib.suppress(SourceUnavailable):
        groups = memory_groups(os.getpid())
    with contextlib.closing(AvailableMemory(groups)) as memory:
        found = memory.binding()
    if found is None:
        raise SourceUnavailable("/proc/meminfo has no MemTotal.")
    return found


class _Group:
    """The open files of one group."""

    def __init__(self, group: MemoryGroup) -> None:
        def kept(name: str, size: int = _NUMBER_BYTES) -> KeptFile:
            return KeptFile(f"{group.directory}/{name}", size)

        names = group.files
        self._limit, self._used = kept(names.limit), kept(names.used)
        self._stat = kept(STAT, _STAT_BYTES)
        self._swap: tuple[KeptFile, KeptFile] | None = None
        self._counts_memory_too = group.version == 1
        with contextlib.suppress(SourceUnavailable):
            self._swap = kept(names.swap_limit), kept(names.swap_used)
        self._cache = [name.encode() for name in names.cache]
        self._held = [name.encode() for name in names.held]

    @property
    def files(self) -> tuple[KeptFile, ...]:
        return (self._limit, self._used, self._stat, *(self._swap or ()))

    def limit(self) -> int | None:
        """The limit in bytes; None if there is none."""
        with contextlib.suppress(SourceUnavailable):
            return _number(self._limit)
        return None

    def left(self, swap_bytes: int) -> int:
        """Bytes left in the group; `swap_bytes`: free swap of the machine."""
        limit = _number(self._limit)
        if limit is None:
            return _NO_LIMIT_BYTES
        used = _number(self._used) or 0
        stat = self._stat.read_bytes()
        cache, held = (
            sum(_fields(stat, b" ", names).values()) for names in (self._cache, self._held)
        )
        cache = max(0, min(cache, used - held))  # the counters include a deleted file for a while
        left = limit - used + cache
        if not swap_bytes or self._swap is None:
            return left
        swap_limit, swap_used = (_number(file) for file in self._swap)
        if self._counts_memory_too:  # version 1 counts memory and swap together
            both = (
                swap_bytes + left if swap_limit is None else swap_limit - (swap_used or 0) + cache
            )
            return max(left, min(left + swap_bytes, both))
        allowed = swap_bytes if swap_limit is None else swap_limit - (swap_used or 0)
        return left + max(0, min(swap_bytes, allowed))


def _number(file: KeptFile) -> int | None:
    """The number in a file; None for no limit."""
    text = file.read_bytes().strip()
    if text == b"max":
        return None
    number = int(text)
    return None if number >= _NO_LIMIT_BYTES else number


def _fields(content: bytes, separator: bytes, names: Sequence[bytes]) -> dict[bytes, int]:
    """The numbers after the given names: ``MemAvailable:  123 kB`` or ``active_file 123``."""
    found = {}
    for name in names:
        start = content.find(name + separator)
        if start > 0 and content[start - 1 : start] != b"\n":
            start = content.find(b"\n" + name + separator) + 1
        if start >= 0 and content.startswith(name + separator, start):
            found[name] = int(content[start + len(name) + 1 : start + len(name) + 40].split()[0])
    return found
