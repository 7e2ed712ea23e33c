"""The message of a stopped cell: how much memory was left, what used it, what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..batch_place import IN_ARGUMENT, BatchPlace
from ..kept_data import Holder, Kept, holders_text, large_part
from ..memory.limits import Limit
from ..units import human_bytes
from .children import Child
from .children import text as text_of_children
from .saving import Saving

_SHOWN_ARRAYS = 3
# Of the limit, or of what the cell added; smaller variables and containers are not listed.
_LARGE_FRACTION = 0.02
KEEPS_BETWEEN_STEPS = (
    "Memory grew from step to step, so a smaller batch does not help: something keeps data. Look at what callbacks, "
    "the data's own objects and the functions that they call append to or store."
)
# Children that hold this part of what the cell added are the cause, not the notebook's variables.
_CHILDREN_FRACTION = 0.5
# `predict` joins its outputs at the end, which takes three times their size.
_PIECES = 4
_WAS_FULL = "Most of the memory was in use before this cell: delete what you no longer need, or restart the kernel."
AS_THEY_WERE = "Your variables and models are as they were."
SWITCH_OFF = "To run without this stop: %tfguard pause for this notebook, or the option TfGuard.stop = 'off'."


class CellFacts(NamedTuple):
    """Known facts about the stopped cell. None: unknown.

    Attributes:
        arrays: The largest variables, as ``{"name", "bytes"}``.
        fit: ``fit``, ``evaluate`` or ``predict`` while one is running.
        batch_size: Batch size of that run.
        loop_step: Newest known step of the user's own training loop.
        finished_rows: Rows that a ``predict`` had finished.
        batch_place: Where it is set.
        kept_data: What the data pipelines of that run keep in memory.
        holders: Objects of the notebook that grew in this cell, and what IPython keeps of earlier ones, measured now, largest
            first. If a single request was refused, only what is large.
        keeps_between_steps: Memory grew from step to step of the running fit, so that the batch is not the cause.
        was_full: Most of the memory was in use before this cell, or before the single request.
    """

    arrays: Sequence[dict[str, Any]] = ()
    fit: str | None = None
    batch_size: int | None = None
    loop_step: int | None = None
    finished_rows: int | None = None
    batch_place: BatchPlace = IN_ARGUMENT
    kept_data: Sequence[Kept] = ()
    holders: Sequence[Holder] = ()
    keeps_between_steps: bool = False
    was_full: bool = False


class StopMoment(NamedTuple):
    """What was seen at the moment of a stop.

    Attributes:
        children: Child processes that hold memory by themselves, largest first.
        saving: The save that the cell was in; None if it was in none.
    """

    children: Sequence[Child] = ()
    saving: Saving | None = None


def stop_lines(
    facts: CellFacts,
    limit: Limit,
    left_bytes: int,
    added_bytes: int,
    *,
    moment: StopMoment | None = None,
    wanted_bytes: int | None = None,
    is_first: bool,
) -> tuple[str, ...]:
    """The sentences of the exception, a line each.

    Args:
        facts: Facts about the cell.
        limit: The binding limit.
        left_bytes: Available memory when the cell was stopped.
        added_bytes: Memory that the cell had added by then.
        moment: What was seen when the cell was stopped.
        wanted_bytes: Size of a single request, if that was more than `left_bytes`.
        is_first: Whether this is the first stop in this kernel.
    """
    moment = moment or StopMoment()
    asked = "" if wanted_bytes is None else f"it asked for {human_bytes(wanted_bytes)}, and "
    lines = [
        f"tfguard stopped this cell before the system would have ended the kernel: {asked}{human_bytes(max(0, left_bytes))} "
        f"of {limit.text()} were left."
    ]
    taken = f"This cell added {human_bytes(max(0, added_bytes))}."
    if facts.loop_step is not None:
        taken += f" Its training loop had reached step {facts.loop_step:,}."
    is_in_children = _is_in_children(moment, added_bytes)
    if is_in_children:
        taken += f" {text_of_children(moment.children, limit.size_bytes - max(0, left_bytes))}"
    large = [a for a in facts.arrays if a["bytes"] >= _LARGE_FRACTION * limit.size_bytes]
    if large and not is_in_children:
        named = ", ".join(f"{a['name']} {human_bytes(a['bytes'])}" for a in large[:_SHOWN_ARRAYS])
        taken += f" Largest variables: {named}."
    lines.append(taken)
    lines.append(f"{AS_THEY_WERE} {_advice(facts, moment, added_bytes)}")
    if is_first:
        lines.append(SWITCH_OFF)
    return tuple(lines)


def refusal_lines(
    facts: CellFacts,
    limit: Limit,
    left_bytes: int,
    wanted_bytes: int,
    *,
    moment: StopMoment | None = None,
    is_first: bool,
) -> tuple[str, ...]:
    """The sentences below the traceback of a cell whose single request was too large, a line each.

    Args:
        facts: Facts about the cell.
        limit: The binding limit.
        left_bytes: Available memory at the time of the request.
        wanted_bytes: Size of the request.
        moment, is_first: As in :func:`stop_lines`.
    """
    lines = [
        f"tfguard refused {human_bytes(wanted_bytes)}: {human_bytes(max(0, left_bytes))} of {limit.text()} "
        f"were left, and the system would have ended the kernel. {_advice(facts, moment or StopMoment())}"
    ]
    return (*lines, SWITCH_OFF) if is_first else tuple(lines)


def _is_in_children(moment: StopMoment, added_bytes: int | None) -> bool:
    held = sum(one.bytes for one in moment.children)
    return bool(added_bytes) and held >= _CHILDREN_FRACTION * (added_bytes or 0)


def _advice(facts: CellFacts, moment: StopMoment, added_bytes: int | None = None) -> str:
    """What to change.

    Args:
        facts: Facts about the cell.
        limit: The binding limit.
        moment: What was seen when the cell was stopped.
        added_bytes: Memory that the cell added bit by bit; None for a single request.
    """
    saving = moment.saving
    if saving is not None and not (added_bytes and large_part(facts.holders, added_bytes)):
        return f"{saving.incomplete()} {saving.advice()}".lstrip()
    if saving is not None:  # a checkpoint of a run whose memory is held elsewhere
        rest = _advice(facts, moment._replace(saving=None), added_bytes)
        return f"{saving.incomplete()} {rest}".lstrip()
    if _is_in_children(moment, added_bytes):
        return _advice_about_children(moment.children)
    held = large_part(facts.holders, added_bytes) if added_bytes else facts.holders
    if held:
        least = _LARGE_FRACTION * (added_bytes or 0)
        return holders_text([one for one in held if (one.added_bytes or 0) >= least])
    if added_bytes and (kept := large_part(facts.kept_data, added_bytes)):
        return " ".join(one.text for one in kept)
    if facts.fit == "predict" and (rows := facts.finished_rows):
        return (
            "predict() keeps all its outputs, and needs about three times their size at the end. "
            f"Predict in pieces, for example of {_rounded(rows // _PIECES)} rows, and write each to a file."
        )
    has_steps = facts.fit is not None or facts.loop_step is not None
    if added_bytes and has_steps and facts.keeps_between_steps:
        return KEEPS_BETWEEN_STEPS
    if added_bytes and facts.was_full:
        return f"{_WAS_FULL} {_batch_advice(facts)}" if facts.fit else _WAS_FULL
    return _batch_advice(facts)


def _advice_about_children(children: Sequence[Child]) -> str:
    if any(one.is_worker for one in children):
        return (
            "The memory grew in worker processes, not in the kernel: start fewer workers, "
            "or keep less in what runs there."
        )
    return f"If that process still runs, end it: !kill {children[0].pid}"


def _rounded(count: int) -> str:
    """One digit and zeros, rounded down."""
    unit = 10 ** (len(str(count)) - 1)
    return f"{max(1, count // unit * unit):,}"


def _batch_advice(facts: CellFacts) -> str:
    if facts.fit is not None and facts.batch_size is not None and facts.batch_size > 1:
        half = max(1, facts.batch_size // 2)
        example = facts.batch_place.change(facts.fit, half)
        return f"Try {facts.fit}() with a smaller batch, for example {example}, or feed the data in pieces."
    if facts.fit is not None and facts.batch_size is None and facts.batch_place != IN_ARGUMENT:
        change = facts.batch_place.change(facts.fit)
        return f"Run {facts.fit}() with {change}, or feed the data in pieces."
    if facts.fit is not None:
        return f"Run {facts.fit}() with smaller batches, or feed the data in pieces."
    if facts.loop_step is not None:
        return "Take smaller batches in the training loop, or keep less from step to step."
    return (
        "Load less at once, use a smaller dtype such as float32, or delete what you no longer need."
    )
