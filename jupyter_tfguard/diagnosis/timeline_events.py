"""What happened while the curve of a report was drawn: cells, fits, epochs, checkpoints, and what went wrong at the end.

The journal is the kernel's own word and may be forged: what has the wrong type is left out, and of what there is too much
the newest stays. The short live list of marks is in :mod:`~..record.marks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .curves import limit_curve
from .evidence import Evidence
from .typed import number_of, text_of, whole_of

CELL = "cell"
FIT = "fit"
EPOCH = "epoch"
CHECKPOINT = "checkpoint"
WARNING = "warning"
GPU_OOM = "gpu_oom"
HANG = "hang"
DEATH = "death"

# Of each kind; an axis has no room for more.
_LIMITS = {CELL: 30, FIT: 20, EPOCH: 30, CHECKPOINT: 20, GPU_OOM: 10}
_TEXT_LIMIT = 40
_WARNING_FRACTION = 0.9
# A cell that does nothing but fit, or whose end is its last fit's, has one mark at that end.
_SAME_MOMENT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A moment of the curve. `time`: Unix seconds; `kind`: one of the names above."""

    time: float
    kind: str
    label: str


def timeline_events(seen: Evidence, since: float) -> list[TimelineEvent]:
    """All from `since` (Unix seconds) to the death, by time."""
    found: list[TimelineEvent] = []
    cell = None
    for event in seen.journal:
        if event.get("kind") == "cell_start":
            cell = whole_of(event.get("execution_count"))
        made = _of_journal(event, cell)
        if made is not None and since <= made.time <= seen.died + 1:
            found.append(made)
    kept = [
        event
        for kind, limit in _LIMITS.items()
        for event in _spread([e for e in _without_doubles(found) if e.kind == kind], limit)
    ]
    kept += [event for event in _endings(seen) if event.time >= since]
    return sorted(kept, key=lambda event: event.time)


def _of_journal(event: dict[str, Any], cell: int | None) -> TimelineEvent | None:
    kind, when = event.get("kind"), number_of(event.get("t"))
    if when is None:
        return None
    here = f"[{cell}]" if cell else "cell"
    if kind == "cell_start":
        return TimelineEvent(when, CELL, here)
    if kind == "cell_end":
        return TimelineEvent(when, CELL, f"{here} ended")
    if kind == "fit_start":
        what = (text_of(event.get("what")) or "fit")[:_TEXT_LIMIT]
        return TimelineEvent(when, FIT, f"{here} {what}" if cell else what)
    if kind == "fit_end":
        return TimelineEvent(when, FIT, "fit failed" if event.get("ok") is False else "fit ended")
    if kind == "epoch_end":
        number = whole_of(event.get("epoch"))
        return TimelineEvent(when, EPOCH, f"epoch {number}") if number else None
    if kind == "checkpoint":
        written = number_of(event.get("written"))
        moment = written if written is not None and abs(written - when) < 3600 else when
        return TimelineEvent(moment, CHECKPOINT, "checkpoint")
    return TimelineEvent(when, GPU_OOM, "GPU OOM") if kind == "gpu_oom" else None


def _without_doubles(events: list[TimelineEvent]) -> list[TimelineEvent]:
    """A cell's beginning goes where a fit of it begins at once; a cell's end where the next cell begins at once."""
    kept = []
    for number, event in enumerate(events):
        after = next((e for e in events[number + 1 :] if e.kind in (CELL, FIT)), None)
        near = after is not None and 0 <= after.time - event.time < _SAME_MOMENT_SECONDS
        if not (event.kind in (CELL, FIT) and near and after is not None and _tells(after, event)):
            kept.append(event)
    return kept


def _tells(after: TimelineEvent, event: TimelineEvent) -> bool:
    """True when `after`, at the same moment, tells what `event` does."""
    if event.label.endswith((" ended", " failed")):
        return after.kind == CELL
    return event.kind == CELL and after.label.startswith(f"{event.label} ")


def _spread(events: list[TimelineEvent], limit: int) -> list[TimelineEvent]:
    """At most `limit` of them: the newest always, the others at even distances."""
    stretch = -(-len(events) // limit)
    return events[::-1][:: max(1, stretch)][::-1]


def _endings(seen: Evidence) -> list[TimelineEvent]:
    found = []
    limit = seen.limit()
    if limit is not None:
        low = True
        crossed = None
        for when, value in limit_curve(seen):
            if low and value >= _WARNING_FRACTION * limit[0]:
                crossed = when
            low = value < _WARNING_FRACTION * limit[0]
        if crossed is not None:
            found.append(TimelineEvent(crossed, WARNING, "90 % of the limit"))
    if seen.hang is not None:
        found.append(TimelineEvent(seen.died - seen.hang.seconds, HANG, "stands still"))
    label = "child ended" if seen.kernel_alive else "ended"
    return [*found, TimelineEvent(seen.died, DEATH, label)]
