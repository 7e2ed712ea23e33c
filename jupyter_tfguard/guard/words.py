"""The message of a stopped cell: how much memory was left, what used it, what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..kept_data import Holder, Kept, holders_text, large_part
from ..limits import MACHINE_MEMORY
from ..units import human_bytes

_SHOWN_ARRAYS = 3
# Of the limit, or of what the cell added; smaller variables and containers are not listed.
_LARGE_FRACTION = 0.02
KEEPS_BETWEEN_STEPS = (
    "Memory grew from step to step, so a smaller batch does not help: something keeps data. Look at what callbacks, "
    "the data's own objects and the functions that they call append to or store."
)
SWITCH_OFF = "To run without this stop: %tfguard pause for this notebook, or the option TfGuard.stop = 'off'."


class CellFacts(NamedTuple):
    """Known facts about the stopped cell. None: unknown.

    Attributes:
        limit_name: Name of the binding limit, for the user.
        arrays: The largest variables, as ``{"name", "bytes"}``.
        fit: ``fit``, ``evaluate`` or ``predict`` while one is running.
        batch_size: Batch size of that run.
        kept_data: What the data pipelines of that run keep in memory.
        holders: Objects of the notebook that grew in this cell, measured now, largest first.
        keeps_between_steps: Memory grew from step to step of the running fit, so that the batch is not the cause.
    """

    limit_name: str = MACHINE_MEMORY
    arrays: Sequence[dict[str, Any]] = ()
    fit: str | None = None
    batch_size: int | None = None
    kept_data: Sequence[Kept] = ()
    holders: Sequence[Holder] = ()
    keeps_between_steps: bool = False


def stop_lines(
    facts: CellFacts,
    total_bytes: int,
    left_bytes: int,
    added_bytes: int,
    *,
    wanted_bytes: int | None = None,
    is_first: bool,
) -> tuple[str, ...]:
    """The sentences of the exception, a line each.

    Args:
        facts: Facts about the cell.
        total_bytes: The limit.
        left_bytes: Available memory when the cell was stopped.
        added_bytes: Memory that the cell had added by then.
        wanted_bytes: Size of a single request, if that was more than `left_bytes`.
        is_first: Whether this is the first stop in this kernel.
    """
    asked = "" if wanted_bytes is None else f"it asked for {human_bytes(wanted_bytes)}, and "
    lines = [
        f"tfguard stopped this cell before the system would have ended the kernel: {asked}{human_bytes(max(0, left_bytes))} "
        f"of {human_bytes(total_bytes)} ({facts.limit_name}) were left."
    ]
    taken = f"This cell added {human_bytes(max(0, added_bytes))}."
    large = [a for a in facts.arrays if a["bytes"] >= _LARGE_FRACTION * total_bytes]
    if large:
        named = ", ".join(f"{a['name']} {human_bytes(a['bytes'])}" for a in large[:_SHOWN_ARRAYS])
        taken += f" Largest variables: {named}."
    lines.append(taken)
    lines.append(f"Your variables and models are as they were. {_advice(facts, added_bytes)}")
    if is_first:
        lines.append(SWITCH_OFF)
    return tuple(lines)


def refusal_lines(
    facts: CellFacts, total_bytes: int, left_bytes: int, wanted_bytes: int, *, is_first: bool
) -> tuple[str, ...]:
    """The sentences below the traceback of a cell whose single request was too large, a line each.

    Args:
        facts: Facts about the cell.
        total_bytes: The limit.
        left_bytes: Available memory at the time of the request.
        wanted_bytes: Size of the request.
        is_first: As in :func:`stop_lines`.
    """
    lines = [
        f"tfguard refused {human_bytes(wanted_bytes)}: {human_bytes(max(0, left_bytes))} of {human_bytes(total_bytes)} "
        f"({facts.limit_name}) were left, and the system would have ended the kernel. {_advice(facts)}"
    ]
    return (*lines, SWITCH_OFF) if is_first else tuple(lines)


def _advice(facts: CellFacts, added_bytes: int | None = None) -> str:
    """What to change.

    Args:
        facts: Facts about the cell.
        added_bytes: Memory that the cell added bit by bit; None for a single request.
    """
    if added_bytes:
        if held := large_part(facts.holders, added_bytes):
            least = _LARGE_FRACTION * added_bytes
            return holders_text([one for one in held if (one.added_bytes or 0) >= least])
        if kept := large_part(facts.kept_data, added_bytes):
            return " ".join(one.text for one in kept)
        if facts.fit is not None and facts.keeps_between_steps:
            return KEEPS_BETWEEN_STEPS
    if facts.fit is not None and facts.batch_size is not None and facts.batch_size > 1:
        half = max(1, facts.batch_size // 2)
        return f"Try {facts.fit}() with a smaller batch, for example batch_size={half}, or feed the data in pieces."
    if facts.fit is not None:
        return f"Run {facts.fit}() with smaller batches, or feed the data in pieces."
    return (
        "Load less at once, use a smaller dtype such as float32, or delete what you no longer need."
    )
