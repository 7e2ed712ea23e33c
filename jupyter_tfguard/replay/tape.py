"""What a bundle tells of the time before the death, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..diagnosis.evidence import Evidence
from ..diagnosis.typed import dict_of, number_of, text_of
from ..limits import Limit
from ..record.timeline import column, timeline
from ..watch.history import COLUMNS, ULIMIT_COLUMNS

RSS = "process.rss_bytes"
# Of a recording without samples: time enough to see that none come.
_EMPTY_SECONDS = 10.0
_LATEST = 4e9
_DEPTH_LIMIT = 8
# Of one table, more than any report keeps.
ROWS_LIMIT = 4000
_COLUMNS = (*COLUMNS, *ULIMIT_COLUMNS)
_CLAIMED = ("samples", "seconds", "minutes")

Values = dict[str, float]
Event = dict[str, Any]


@dataclass(frozen=True)
class Tape:
    """A recording to be played. Times are Unix seconds, as they were recorded.

    Attributes:
        notebook: A path for it below the server's folder: the notebook's own where that is a plain one.
        first, end: Of the first thing that is known, and of the death.
        samples: (time, value by metric), oldest first.
        events: Of the kernel, with ``t``, oldest first.
        progress: The newest of the fit that was last, and when it was so; None without one.
        header: What the kernel said of itself; None without a recording of its own.
        limit: The one that bound; None = unknown.
        bundle: All of it.
    """

    notebook: str
    first: float
    end: float
    samples: tuple[tuple[float, Values], ...]
    events: tuple[Event, ...]
    progress: tuple[float, dict[str, Any]] | None
    header: dict[str, Any] | None
    limit: Limit | None
    bundle: dict[str, Any]


def tape_of(bundle: dict[str, Any]) -> Tape:
    """The recording in a bundle, whatever is damaged or missing in it."""
    seen = Evidence(bundle)
    end = min(max(seen.died, 0.0), _LATEST)
    kernel = dict_of(bundle.get("kernel"))
    samples = tuple((when, values) for when, values in _samples(bundle, end) if when <= end)
    events = tuple(_events(kernel, end))
    moments = [when for when, _ in samples[:1]] + [float(event["t"]) for event in events[:1]]
    identity = dict_of(bundle.get("identity"))
    return Tape(
        notebook=_notebook(text_of(identity.get("notebook_path")) or ""),
        first=min([*moments, end - _EMPTY_SECONDS]),
        end=end,
        samples=samples,
        events=events,
        progress=_progress(kernel),
        header=dict_of(kernel.get("header")) if bundle.get("kernel") else None,
        limit=seen.limit(),
        bundle=bundle,
    )


def _notebook(told: str) -> str:
    # A path from somewhere else may be absolute, lead out of the folder, or be none.
    parts = told.removesuffix(".ipynb").split("/")
    plain = ["".join(c for c in part if c.isalnum() or c in "-_ ").strip()[:60] for part in parts]
    if plain == parts and all(parts) and len(parts) <= _DEPTH_LIMIT:
        return f"{'/'.join(parts)}.ipynb"
    return f"{plain[-1] or 'notebook'}.ipynb"


def _samples(bundle: dict[str, Any], end: float) -> list[tuple[float, Values]]:
    server, kernel = _newest(dict_of(bundle.get("server"))), dict_of(bundle.get("kernel"))
    claimed = {name: _newest(dict_of(kernel.get(name))) for name in _CLAIMED}
    by_time: dict[float, Values] = {
        point.time: {RSS: point.highest} for point in timeline(RSS, server, claimed, end)
    }
    # A zip may name a column any number of times.
    for name in _COLUMNS:
        for when, value in column(server, name):
            if when in by_time:
                by_time[when][name] = value
    return sorted(by_time.items(), key=lambda pair: pair[0])


def _newest(table: dict[str, Any]) -> dict[str, Any]:
    rows = table.get("rows")
    return table | {"rows": rows[-ROWS_LIMIT:]} if isinstance(rows, (list, tuple)) else table


def _events(kernel: dict[str, Any], end: float) -> list[Event]:
    found = kernel.get("events")
    events = [dict_of(event) for event in (found if isinstance(found, list) else ())]
    timed = [event for event in events if (when := number_of(event.get("t"))) and 0 < when <= end]
    return sorted(timed, key=lambda event: float(event["t"]))


def _progress(kernel: dict[str, Any]) -> tuple[float, dict[str, Any]] | None:
    told = dict_of(kernel.get("progress"))
    when = number_of(told.get("time"))
    return None if when is None else (when, told)
