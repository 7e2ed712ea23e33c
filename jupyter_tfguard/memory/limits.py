"""The memory limit that binds: the one with the least headroom. Every view, the guard and the estimate take it from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from ..units import human_bytes


class LimitKind(Enum):
    """What sets a limit."""

    CGROUP = "cgroup"
    HOST = "host"
    GPU = "gpu"
    ADDRESS_SPACE = "address_space"
    DATA = "data"


_NAMES = {
    LimitKind.CGROUP: "container limit",
    LimitKind.HOST: "machine memory",
    LimitKind.GPU: "GPU memory",
    LimitKind.ADDRESS_SPACE: "address space limit (ulimit -v)",
    LimitKind.DATA: "data size limit (ulimit -d)",
}
# Metric that a limit of the process counts, and metric of the limit.
ULIMITS = {
    LimitKind.ADDRESS_SPACE: (
        "process.address_space_bytes",
        "process.address_space_limit_bytes",
    ),
    LimitKind.DATA: ("process.data_bytes", "process.data_limit_bytes"),
}


class Limit(NamedTuple):
    """A memory limit: its size in bytes, and what sets it."""

    size_bytes: int
    kind: LimitKind

    @property
    def name(self) -> str:
        """Its name for users: ``container limit``."""
        return _NAMES[self.kind]

    def text(self) -> str:
        """Size and name: ``4.00 GiB (container limit)``."""
        return named(human_bytes(self.size_bytes), self.name)

    @property
    def is_ulimit(self) -> bool:
        """True for a limit of the process, which counts reserved memory and not resident memory."""
        return self.kind in ULIMITS

    @property
    def wire_kind(self) -> str:
        """``cgroup``, ``host``, ``gpu`` or ``ulimit``: as in the stream and in a bundle."""
        return "ulimit" if self.is_ulimit else self.kind.value

    def state(self) -> dict[str, int | str]:
        """In the panel's format: ``{"bytes", "name", "kind"}``."""
        return {"bytes": self.size_bytes, "name": self.name, "kind": self.wire_kind}

    def used(self, values: Mapping[str, float]) -> float | None:
        """Bytes in use that this limit counts, without reclaimable file cache; None = unknown.

        Args:
            values: Metrics of the process, the group and the machine.
        """
        if self.kind in ULIMITS:
            return values.get(ULIMITS[self.kind][0])
        if self.kind is LimitKind.CGROUP:
            held = values.get("cgroup.used_bytes")
            if held is None:
                return None
            return held - min(held, values.get("cgroup.reclaimable_bytes") or 0)
        free = values.get("host.available_bytes")
        return None if free is None else self.size_bytes - free

    def left(self, values: Mapping[str, float]) -> float:
        """Bytes of headroom, below 0 beyond the limit; the whole limit where the use is unknown. `values`: as for :meth:`used`."""
        return self.size_bytes - (self.used(values) or 0.0)


def named(size: str, limit_name: str) -> str:
    """``4.00 GiB (container limit)``; a name with a bracket follows a comma."""
    return f"{size}, {limit_name}" if "(" in limit_name else f"{size} ({limit_name})"


def memory_limit(values: Mapping[str, float]) -> Limit | None:
    """The limit of resident memory with the least headroom, of the group or the machine; None if neither is known.

    Args:
        values: Metrics of the group and the machine. Those of the group are of the one with the least headroom among the
            group of the process and its ancestors (:mod:`~.collectors.cgroup`).
    """
    return min(_memory_limits(values), key=lambda limit: limit.left(values), default=None)


def binding_limit(values: Mapping[str, float]) -> Limit | None:
    """The limit with the least headroom, of memory or of the process; None if none is known.

    Args:
        values: Metrics of the process, the group and the machine.
    """
    found = [*_memory_limits(values), *_ulimits(values)]
    return min(found, key=lambda limit: limit.left(values), default=None)


def _memory_limits(values: Mapping[str, float]) -> Iterator[Limit]:
    for kind, name in (
        (LimitKind.CGROUP, "cgroup.limit_bytes"),
        (LimitKind.HOST, "host.total_bytes"),
    ):
        if size := values.get(name):
            yield Limit(int(size), kind)


def _ulimits(values: Mapping[str, float]) -> Iterator[Limit]:
    for kind, (used, name) in ULIMITS.items():
        # Its use comes from the same file: without it, the limit is not known to bind.
        if used in values and (size := values.get(name)):
            yield Limit(int(size), kind)


def memory_in_use(limit: Limit | None, values: Mapping[str, float]) -> float | None:
    """Bytes that every view shows as the memory in use; None = unknown.

    This is the memory that the limit counts. Without a limit, or if its use is unknown, it is the resident memory of
    the process.

    Args:
        limit: The binding limit.
        values: Metrics of the process, the group and the machine.
    """
    used = None if limit is None else limit.used(values)
    return values.get("process.rss_bytes") if used is None else used


def kept_bytes(values: Mapping[str, float]) -> float | None:
    """Bytes of a process that the system cannot drop: resident and swapped out, without pages of files; None = unknown.

    Args:
        values: Metrics of the process.
    """
    resident = values.get("process.rss_bytes")
    if resident is None:
        return None
    files = values.get("process.file_bytes") or 0.0
    return resident - min(resident, files) + (values.get("process.swap_bytes") or 0.0)
