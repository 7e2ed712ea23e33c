"""Checks how much memory a kernel may use: the limit of the control group and the machine's memory."""

from __future__ import annotations

from ...collectors.cgroup import GroupValues
from ...errors import SourceUnavailable
from ...memory.groups import group_path, groups_at, machine_bytes
from ...memory.limits import LimitKind, memory_limit
from ...procfs import read_text
from ...units import GIB, human_bytes, is_known
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "memory limit"
# TensorFlow 2.21 uses 0.6 GiB after its import, measured without a GPU.
_LITTLE_BYTES = 2 * GIB
_NEAR_FRACTION = 0.9


def check(machine: Environment) -> CheckResult | None:
    """The limit that is reached first, and the memory in use."""
    if machine.system != "linux":
        return None
    root = str(machine.root).rstrip("/")
    machine_has = machine_bytes(root)
    try:
        place = group_path(read_text(f"{root}/proc/self/cgroup"))
        groups = GroupValues(groups_at(*place, root=root), machine_has)
        values = groups.used()
    except SourceUnavailable as absent:
        text = f"could not read whether a control group limits memory: {absent}"
        return CheckResult(NAME, Status.UNKNOWN, text)
    known = machine_has if is_known(machine_has) else None
    if known is not None:
        values["host.total_bytes"] = known
    limit = memory_limit(values)
    if limit is None:
        return CheckResult(
            NAME, Status.UNKNOWN, "could not read the memory limit or the machine's memory"
        )
    size = limit.size_bytes
    if limit.kind is not LimitKind.CGROUP:
        return CheckResult(NAME, Status.OK, f"only the machine's memory, {human_bytes(size)}")
    used = limit.used(values) or 0
    text = f"{human_bytes(used)} of {human_bytes(size)} allowed memory is in use"
    if known is not None:
        text += f"; the machine's {human_bytes(known)}, which `free` shows, is not the limit"
    if used > _NEAR_FRACTION * size:
        return CheckResult(NAME, Status.WARNING, text, _fix(machine))
    if size < _LITTLE_BYTES and machine.tensorflow is not None:
        text += ". TensorFlow alone needs 0.6 GiB"
        return CheckResult(NAME, Status.WARNING, text, _fix(machine))
    return CheckResult(NAME, Status.OK, text)


def _fix(machine: Environment) -> str | None:
    return "docker run --memory=8g ..." if machine.in_container else None
