"""Repeated events before the death, read from the journal: epochs, fits, runs of a cell, and arrays that grew with them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ..kept_data import Holder
from ..record.events import CellEnd, CellStart, EpochEnd, FitStart, MemoryGrowth, MemoryStopped
from .observed import Observed


@dataclass(frozen=True)
class Moment:
    """A repeated event: the end of an epoch, the start of a fit, or the start of a cell's run.

    Attributes:
        number: Number of the epoch or fit; for runs of a cell, a count.
        time: Unix seconds.
        seconds: Duration of the epoch; None for other events.
        kept_bytes: Resident memory at that time, without pages of files if these are known; None when not recorded.
        name: Name of the cell.
    """

    number: int
    time: float
    seconds: float | None = None
    kept_bytes: int | None = None
    name: str | None = None


def epoch_ends(seen: Observed) -> list[Moment]:
    """The epochs that the newest fit finished."""
    found: list[Moment] = []
    newest: object = None
    for event in seen.journal:
        if not isinstance(event, EpochEnd) or event.epoch is None or event.time is None:
            continue
        if event.fit_id != newest:
            newest, found = event.fit_id, []
        if not found or event.epoch > found[-1].number:
            found.append(Moment(event.epoch, event.time, event.seconds))
    return found


def fit_events(seen: Observed) -> list[FitStart]:
    """The starts of the fits of the running cell, or else the last cell. The journal skips some of many quick fits."""
    found: list[FitStart] = []
    for event in seen.journal:
        if isinstance(event, CellStart):
            found = []
        if isinstance(event, FitStart) and event.what == "fit":
            found.append(event)
    return found


def fit_starts(seen: Observed) -> list[Moment]:
    """The fits that the running cell, or else the last cell, started."""
    found: list[Moment] = []
    for event in fit_events(seen):
        number, when = event.fit_id, event.time
        if number is not None and when is not None and (not found or number > found[-1].number):
            found.append(Moment(number, when, kept_bytes=event.size_bytes))
    return found


def cell_runs(seen: Observed) -> list[Moment]:
    """The starts of all runs of the cell that ran last."""
    starts = [event for event in seen.journal if isinstance(event, CellStart)]
    cell_id = starts[-1].cell_id if starts else None
    same = [event for event in starts if cell_id and event.cell_id == cell_id]
    found = []
    for number, event in enumerate(same, 1):
        count = event.execution_count
        if event.time is not None:
            name = f"cell [{count}]" if count else "the cell"
            found.append(Moment(number, event.time, kept_bytes=event.size_bytes, name=name))
    return found


def grown_arrays(seen: Observed) -> list[tuple[str, int, int]]:
    """(name, first bytes, last bytes) of top-level arrays that were larger after each cell than after the one before."""
    sizes: dict[str, list[int]] = {}
    for event in seen.journal:
        for array in (event.arrays or ()) if isinstance(event, CellEnd) else ():
            sizes.setdefault(array.name, []).append(array.bytes)
    rising = {
        n: s
        for n, s in sizes.items()
        if len(s) > 2 and all(a < b for a, b in itertools.pairwise(s))
    }
    return sorted(((n, s[0], s[-1]) for n, s in rising.items()), key=lambda g: g[1] - g[2])


def kept_by_loop(seen: Observed) -> list[Holder]:
    """Objects that grew together with memory, from the newest alarm about growing memory."""
    alarms = [event for event in seen.journal if isinstance(event, MemoryGrowth)]
    return list(alarms[-1].holders) if alarms else []


def kept_at_stop(seen: Observed) -> list[Holder]:
    """Objects that held the memory when the last cell was stopped; empty if it was not."""
    found: list[Holder] = []
    for event in seen.journal:
        if isinstance(event, CellStart):
            found = []
        elif isinstance(event, MemoryStopped):
            found = list(event.holders)
    return found
