"""Repeated events before the death, read from the journal: epochs, fits, runs of a cell, and arrays that grew with them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from ..decode import dict_of, number_of, text_of, whole_of
from ..kept_data import Holder
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
        number, when = whole_of(event.get("epoch")), number_of(event.get("t"))
        if event.get("kind") != "epoch_end" or number is None or when is None:
            continue
        if event.get("fit_id") != newest:
            newest, found = event.get("fit_id"), []
        if not found or number > found[-1].number:
            found.append(Moment(number, when, number_of(event.get("seconds"))))
    return found


def fit_events(seen: Observed) -> list[dict[str, Any]]:
    """The starts of the fits of the running cell, or else the last cell. The journal skips some of many quick fits."""
    found: list[dict[str, Any]] = []
    for event in seen.journal:
        if event.get("kind") == "cell_start":
            found = []
        if event.get("kind") == "fit_start" and event.get("what") == "fit":
            found.append(dict(event))
    return found


def fit_starts(seen: Observed) -> list[Moment]:
    """The fits that the running cell, or else the last cell, started."""
    found: list[Moment] = []
    for event in fit_events(seen):
        number, when = whole_of(event.get("fit_id")), number_of(event.get("t"))
        if number is not None and when is not None and (not found or number > found[-1].number):
            found.append(Moment(number, when, kept_bytes=_kept(event)))
    return found


def cell_runs(seen: Observed) -> list[Moment]:
    """The starts of all runs of the cell that ran last."""
    starts = [event for event in seen.journal if event.get("kind") == "cell_start"]
    cell_id = text_of(starts[-1].get("cell_id")) if starts else None
    same = [event for event in starts if cell_id and event.get("cell_id") == cell_id]
    found = []
    for number, event in enumerate(same, 1):
        count, when = whole_of(event.get("execution_count")), number_of(event.get("t"))
        if when is not None:
            name = f"cell [{count}]" if count else "the cell"
            found.append(Moment(number, when, kept_bytes=_kept(event), name=name))
    return found


def _kept(event: dict[str, Any]) -> int | None:
    found = whole_of(event.get("kept_bytes"))
    return whole_of(event.get("rss_bytes")) if found is None else found


def grown_arrays(seen: Observed) -> list[tuple[str, int, int]]:
    """(name, first bytes, last bytes) of top-level arrays that were larger after each cell than after the one before."""
    sizes: dict[str, list[int]] = {}
    for event in seen.journal:
        arrays = event.get("arrays") if event.get("kind") == "cell_end" else None
        for array in arrays if isinstance(arrays, list) else ():
            name, size = (
                (array.get("name"), whole_of(array.get("bytes")))
                if isinstance(array, dict)
                else (None, None)
            )
            if isinstance(name, str) and size is not None:
                sizes.setdefault(name[:80], []).append(size)
    rising = {
        n: s
        for n, s in sizes.items()
        if len(s) > 2 and all(a < b for a, b in itertools.pairwise(s))
    }
    return sorted(((n, s[0], s[-1]) for n, s in rising.items()), key=lambda g: g[1] - g[2])


def kept_by_loop(seen: Observed) -> list[Holder]:
    """Objects that grew together with memory, from the newest alarm about growing memory."""
    alarms = [event for event in seen.journal if event.get("kind") == "memory_growth"]
    return _holders(alarms[-1]) if alarms else []


def kept_at_stop(seen: Observed) -> list[Holder]:
    """Objects that held the memory when the last cell was stopped; empty if it was not."""
    found: list[Holder] = []
    for event in seen.journal:
        if event.get("kind") == "cell_start":
            found = []
        elif event.get("kind") == "memory_stop":
            found = _holders(event)
    return found


def _holders(event: dict[str, Any]) -> list[Holder]:
    recorded = event.get("holders")
    found = []
    for one in map(dict_of, recorded[:3] if isinstance(recorded, list) else ()):
        name, text, how = (text_of(one.get(key)) or "" for key in ("name", "text", "how"))
        if text:
            found.append(Holder(name[:80], text[:200], how[:200], whole_of(one.get("added_bytes"))))
    return found
