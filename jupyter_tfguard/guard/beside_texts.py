"""Texts about what runs beside the code of a cell: threads, tasks, processes."""

from __future__ import annotations

from collections.abc import Sequence

from ..memory.limits import Limit
from ..units import human_bytes

POOL_HAS_ENDED = "A process pool of an earlier cell has ended with its workers: make a new one."
_SHOWN_NAMES = 3


def beside_lines(
    names: Sequence[str], limit: Limit, left_bytes: int, *, in_cell: bool
) -> tuple[str, ...]:
    """The sentences about a stop of something that earlier cells had started, a line each.

    Args:
        names: Names of the threads, or of the function of a task or callback.
        limit: The binding limit.
        left_bytes: Available memory when they were stopped.
        in_cell: Whether a cell was running, which was not stopped.
    """
    is_cell = bool(names) and all(name.startswith("subshell") for name in names)
    what = "the cell" if is_cell else "what an earlier cell had left running"
    lines = [
        f"tfguard stopped {what} ({_listed(names)}) before the system would have ended the kernel: "
        f"{human_bytes(max(0, left_bytes))} of {limit.text()} were left."
    ]
    if in_cell:
        lines.append(f"The {'other' if is_cell else 'running'} cell was not stopped.")
    return tuple(lines)


def runs_on_text(threads: Sequence[str], process_count: int) -> str:
    """The sentences about what goes on although the cell was stopped.

    Args:
        threads: Names of its threads.
        process_count: Number of its worker processes.
    """
    parts = []
    if threads:
        count = "1 thread" if len(threads) == 1 else f"{len(threads)} threads"
        parts.append(f"{count} ({_listed(threads)})")
    if process_count:
        parts.append("1 process" if process_count == 1 else f"{process_count} processes")
    what = " and ".join(parts)
    verb = "runs" if len(threads) + process_count == 1 else "run"
    return (
        f"{what} that this cell started still {verb}, and may change variables and fill memory. "
        "If memory does not come back, restart the kernel."
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    return f"{shown}, …" if len(names) > _SHOWN_NAMES else shown
