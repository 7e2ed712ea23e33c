"""Is there swap, may this process use it, and is it in use already."""

from __future__ import annotations

from ...collectors.host import HostCollector
from ...collectors.memory_group import group_path, groups_at
from ...collectors.procfs import read_int, read_text
from ...errors import SourceUnavailable
from ...units import human_bytes
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "swap"
_BUSY_FRACTION = 0.5


def check(machine: Environment) -> CheckResult | None:
    """Without swap a kernel at its limit dies at once; with it, training becomes slow first."""
    if machine.system == "win32":
        return None  # its page file grows by itself
    root = str(machine.root).rstrip("/")
    try:
        values = HostCollector(root=root).collect()
    except SourceUnavailable as absent:
        return CheckResult(NAME, Status.UNKNOWN, str(absent))
    total, used = values.get("host.swap_total_bytes"), values.get("host.swap_used_bytes")
    if total is None or used is None:
        return CheckResult(NAME, Status.UNKNOWN, "the machine does not tell its swap")
    if not total:
        return CheckResult(
            NAME, Status.OK, "none: what reaches its memory limit is killed without a warning"
        )
    if _forbidden(machine, root):
        text = f"none for this container, though the machine has {human_bytes(total)}"
        return CheckResult(NAME, Status.OK, text)
    text = f"{human_bytes(used)} of {human_bytes(total)} in use"
    if used > _BUSY_FRACTION * total:
        text += ": the machine is short of memory, and what is swapped out comes back slowly"
        return CheckResult(NAME, Status.WARNING, text, "ps -eo rss,pid,args --sort=-rss | head")
    return CheckResult(NAME, Status.OK, text)


def _forbidden(machine: Environment, root: str) -> bool:
    """True when the control group may not swap: memory.swap.max of v2, the sum of both limits in v1."""
    if machine.system != "linux":
        return False
    try:
        groups = groups_at(*group_path(read_text(f"{root}/proc/self/cgroup")), root=root)
    except SourceUnavailable:
        return False
    for group in groups:
        if group.version == 2 and read_int(f"{group.directory}/memory.swap.max") == 0:
            return True
        both = read_int(f"{group.directory}/memory.memsw.limit_in_bytes")
        if group.version == 1 and both is not None and both == group.limit_bytes():
            return True
    return False
