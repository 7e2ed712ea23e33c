"""Who computes on a card and how much of its memory each process holds, as NVML tells it.

The pids are those of the driver: in a container they may be none of this system's.
"""

from __future__ import annotations

import sys
from typing import Any

from .gpu_calls import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NO_PERMISSION,
    NOT_SUPPORTED,
    Asker,
    attempt,
    text,
)

DIVIDED = "This card is divided into instances (MIG), and each instance lists its own processes."
NOT_TRUSTED = (
    "The list of processes cannot be right: a known fault of drivers of the series 535 before 535.104.05, "
    "and of the Python package nvidia-ml-py before 12.535.108."
)
_CALLS = (
    ("nvmlDeviceGetComputeRunningProcesses_v3",),
    ("nvmlDeviceGetComputeRunningProcesses_v2",),
)
_REASONS = {
    NO_PERMISSION: "The driver does not let this user see the processes on this card.",
    NOT_SUPPORTED: "The driver does not tell the processes on this card.",
    FUNCTION_NOT_FOUND: "The NVIDIA driver is too old to tell the processes on this card.",
    INSUFFICIENT_SIZE: "The list of processes on this card changes too fast to be read.",
}
# Source: XuehaiPan/nvitop issues 75 and 88. A list read with the wrong size of its rows has these for every second pid,
# or a piece of a memory size. Linux has no pid above 2**22: proc_sys_kernel(5), pid_max.
_IMPOSSIBLE = frozenset({0, 0xFFFFFFFF})
_HIGHEST = 2**22 if sys.platform == "linux" else 2**32
_TRIES = 3

Rows = list[dict[str, Any]]


class Names:
    """Names of processes, each asked for once as long as the process is on a card."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._known: dict[int, str | None] = {}
        self._listed: set[int] = set()

    def name(self, pid: int) -> str | None:
        """The program's file name without its folder; None where it is not told."""
        self._listed.add(pid)
        if pid not in self._known:
            found, _ = attempt(self._nvml, "nvmlSystemGetProcessName", pid)
            # Sample: "/opt/conda/bin/python3.11"; some drivers add the arguments, which are nobody's business.
            words = (text(found) or "").split()
            self._known[pid] = (words[0].rsplit("/", 1)[-1] or None) if words else None
        return self._known[pid]

    def forget_ended(self) -> None:
        """Forget the processes that no card has listed since the last time."""
        if len(self._known) > len(self._listed):
            self._known = {pid: self._known[pid] for pid in self._listed}
        self._listed.clear()


def processes(
    asker: Asker, names: Names, memory_total_bytes: int | None
) -> tuple[Rows | None, str | None]:
    """Pid, bytes (None: not told) and name of each; or None and why, as a sentence.

    Raises:
        nvml.NVMLError: As :meth:`~.gpu_calls.Asker.ask`.
    """
    for _ in range(_TRIES):
        found = asker.first(*_CALLS)
        # Between the question of how many and the list, more processes came than there was room for.
        if found is not None or INSUFFICIENT_SIZE not in map(asker.errors.get, _CALLS):
            break
    if found is None:
        return None, _why(asker)
    limit = float("inf") if memory_total_bytes is None else memory_total_bytes
    for p in found:
        if p.pid in _IMPOSSIBLE or p.pid > _HIGHEST or (p.usedGpuMemory or 0) > limit:
            return None, NOT_TRUSTED
    return [
        {"pid": p.pid, "used_bytes": p.usedGpuMemory, "name": names.name(p.pid)} for p in found
    ], None


def _why(asker: Asker) -> str:
    codes = [asker.errors.get(call) for call in _CALLS]
    # The newer call says what is the matter, unless this driver does not have it.
    code = next((c for c in codes if c is not None and c != FUNCTION_NOT_FOUND), codes[-1])
    if code in _REASONS:
        return _REASONS[code]
    return f"The driver did not tell the processes on this card (NVML error {code})."
