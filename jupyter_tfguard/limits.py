"""The memory limit that binds a kernel, and what people call it."""

from __future__ import annotations

CONTAINER_LIMIT = "container limit"
MACHINE_MEMORY = "machine memory"


def binding_limit(group_bytes: float | None, machine_bytes: float | None) -> tuple[int, str] | None:
    """The smaller of a control group's limit and the machine's memory, in bytes, and its name; None when neither is known."""
    if group_bytes and (not machine_bytes or group_bytes < machine_bytes):
        return int(group_bytes), CONTAINER_LIMIT
    return (int(machine_bytes), MACHINE_MEMORY) if machine_bytes else None
