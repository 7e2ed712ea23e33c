"""What a stopped cell says: how much was left, what took it, what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..limits import MACHINE_MEMORY
from ..units import human_bytes

_SHOWN_ARRAYS = 3
_LARGE_FRACTION = 0.02  # of the limit: smaller variables are not worth naming
SWITCH_OFF = "To run without this stop: %tfguard pause for this notebook, or the option TfGuard.stop = 'off'."


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What is known of the cell that is stopped. None: unknown.

    Attributes:
        limit_name: Of the limit that binds, for people.
        arrays: The largest variables, as ``{"name", "bytes"}``.
        fit: ``fit``, ``evaluate`` or ``predict`` while one runs.
        batch_size: Of that run.
        holders: What is known to grow from round to round, a sentence each.
    """

    limit_name: str = MACHINE_MEMORY
    arrays: Sequence[dict[str, Any]] = ()
    fit: str | None = None
    batch_size: int | None = None
    holders: Sequence[str] = ()


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
        facts: Of the cell.
        total_bytes: The limit.
        left_bytes: Of it, when the cell was stopped.
        added_bytes: By the cell until then.
        wanted_bytes: What it asked for at once, where that was more than was left.
        is_first: Whether this kernel stops a cell for the first time.
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
    lines.append(f"Your variables and models are as they were. {_advice(facts)}")
    if is_first:
        lines.append(SWITCH_OFF)
    return tuple(lines)


def refusal_lines(
    facts: CellFacts, total_bytes: int, left_bytes: int, wanted_bytes: int, *, is_first: bool
) -> tuple[str, ...]:
    """The sentences below the traceback of a cell that asked for too much at once, a line each.

    Args:
        facts: Of the cell.
        total_bytes: The limit.
        left_bytes: Of it, when the memory was asked for.
        wanted_bytes: What was asked for.
        is_first: As in :func:`stop_lines`.
    """
    lines = [
        f"tfguard refused {human_bytes(wanted_bytes)}: {human_bytes(max(0, left_bytes))} of {human_bytes(total_bytes)} "
        f"({facts.limit_name}) were left, and the system would have ended the kernel. {_advice(facts)}"
    ]
    return (*lines, SWITCH_OFF) if is_first else tuple(lines)


def _advice(facts: CellFacts) -> str:
    if facts.holders:
        return f"{' '.join(facts.holders)} Empty or shorten what grew."
    if facts.fit is not None and facts.batch_size is not None and facts.batch_size > 1:
        half = max(1, facts.batch_size // 2)
        return f"Try {facts.fit}() with a smaller batch, for example batch_size={half}, or feed the data in pieces."
    if facts.fit is not None:
        return f"Run {facts.fit}() with smaller batches, or feed the data in pieces."
    return (
        "Load less at once, use a smaller dtype such as float32, or delete what you no longer need."
    )
