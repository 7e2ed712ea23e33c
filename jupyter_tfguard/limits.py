"""The memory limit that binds a kernel, its name for users, and the memory in use that it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

CONTAINER_LIMIT = "container limit"
MACHINE_MEMORY = "machine memory"
GPU_MEMORY = "GPU memory"
ADDRESS_SPACE_LIMIT = "address space limit (ulimit -v)"
DATA_LIMIT = "data size limit (ulimit -d)"

# Metric that a limit of the process counts, and metric of the limit.
ULIMITS = {
    ADDRESS_SPACE_LIMIT: ("process.address_space_bytes", "process.address_space_limit_bytes"),
    DATA_LIMIT: ("process.data_bytes", "process.data_limit_bytes"),
}
_KINDS = {CONTAINER_LIMIT: "cgroup", MACHINE_MEMORY: "host", GPU_MEMORY: "gpu"}


class Limit(NamedTuple):
    """A memory limit.

    Attributes:
        size_bytes: Its size.
        name: Its name for users.
    """

    size_bytes: int
    name: str

    @property
    def kind(self) -> str:
        """``cgroup``, ``host``, ``gpu`` or ``ulimit``."""
        return _KINDS.get(self.name, "ulimit")

    @property
    def counts_address_space(self) -> bool:
        """True for a limit of the process, which counts reserved memory and not resident memory."""
        return self.name in ULIMITS

    def state(self) -> dict[str, int | str]:
        """In the panel's format: ``{"bytes", "name", "kind"}``."""
        return {"bytes": self.size_bytes, "name": self.name, "kind": self.kind}

    def text(self, size: str) -> str:
        """``4.00 GiB (container limit)``, with the size as formatted by the caller."""
        return f"{size}, {self.name}" if "(" in self.name else f"{size} ({self.name})"


def binding_limit(group_bytes: float | None, machine_bytes: float | None) -> Limit | None:
    """The smaller of a control group's limit and the machine's memory; None if neither is known."""
    if group_bytes and (not machine_bytes or group_bytes < machine_bytes):
        return Limit(int(group_bytes), CONTAINER_LIMIT)
    return Limit(int(machine_bytes), MACHINE_MEMORY) if machine_bytes else None


def memory_limit(values: Mapping[str, float]) -> Limit | None:
    """The smaller of the group's limit and the machine's memory; None if neither is known.

    Args:
        values: Metrics of the group and the machine.
    """
    return binding_limit(values.get("cgroup.limit_bytes"), values.get("host.total_bytes"))


def fullest_limit(values: Mapping[str, float]) -> Limit | None:
    """The binding limit: among memory and process limits, the limit with the largest fraction in use.

    Args:
        values: Metrics of the process, the group and the machine.
    """
    memory = memory_limit(values)
    found = [memory] if memory is not None else []
    found += [
        Limit(int(values[limit]), name)
        for name, (used, limit) in ULIMITS.items()
        if used in values and values.get(limit)
    ]

    def fullness(limit: Limit) -> float:
        return (used_of(*limit, values) or 0.0) / limit.size_bytes

    return max(found, key=fullness, default=None)


def memory_in_use(limit: Limit | None, values: Mapping[str, float]) -> float | None:
    """Bytes that every view shows as the memory in use; None = unknown.

    This is the memory that the limit counts. Without a limit, or if its use is unknown, it is the resident memory of
    the process.

    Args:
        limit: The binding limit.
        values: Metrics of the process, the group and the machine.
    """
    used = None if limit is None else used_of(*limit, values)
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


def used_of(limit_bytes: float, name: str, values: Mapping[str, float]) -> float | None:
    """Bytes in use that a limit counts, without reclaimable file cache; None = unknown.

    Args:
        limit_bytes, name: From :func:`fullest_limit`.
        values: Metrics of the process, the group and the machine.
    """
    if name in ULIMITS:
        return values.get(ULIMITS[name][0])
    if name == CONTAINER_LIMIT:
        held = values.get("cgroup.used_bytes")
        if held is None:
            return None
        return held - min(held, values.get("cgroup.reclaimable_bytes") or 0)
    free = values.get("host.available_bytes")
    return None if free is None else limit_bytes - free
