"""The curves of a report as coordinates of lines, ticks and labels, so that no script is needed to draw them."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import Any

from ..decode import list_of, number_of
from ..units import human_bytes

WIDTH = 920
_LEFT, _RIGHT, _TOP, _FLOOR_ROOM = 62, 14, 16, 22
_HEADROOM = 1.14
_SMALLEST_SHARE = (
    1 / 8
)  # with a smaller share the curve would be flat, so the limit is not drawn inside the chart
_TIME_PARTS = 4
_BAD = ("warning", "gpu_oom", "memory_stop", "leak", "hang")

Json = dict[str, Any]
Samples = list[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line: `points` in SVG syntax, its number (from 0) and its title."""

    points: str
    number: int
    title: str


@dataclass(frozen=True)
class Tick:
    """A position with a label."""

    x: float
    y: float
    text: str
    is_bad: bool = False


@dataclass(frozen=True)
class Picture:
    """One chart, in pixels of its view box.

    Attributes:
        description: The chart in one sentence.
        events: Names are shown on hover, and in the table below the charts.
        limit: Y coordinate of the limit line; None if it is outside the chart, or there is no limit.
        limit_text: Name of the limit, with an arrow if it is outside.
        area: The area below the first line.
        end: X coordinate of the crash; None if not known.
    """

    height: int
    description: str
    lines: tuple[Line, ...]
    area: str
    values: tuple[Tick, ...]
    times: tuple[Tick, ...]
    events: tuple[Tick, ...]
    limit: float | None
    limit_text: str
    end: Tick | None

    width = WIDTH
    left = _LEFT
    right = WIDTH - _RIGHT
    top = _TOP

    @property
    def floor(self) -> float:
        """Y coordinate of zero."""
        return self.height - _FLOOR_ROOM


def pictures(memory: Json | None) -> list[Picture]:
    """One chart of the kernel's memory with the related curves, then one per GPU; empty without samples."""
    samples = _samples((memory or {}).get("samples"))
    if memory is None or len(samples) < 2:
        return []
    died = number_of(memory.get("crash_time"))
    end = died if died is not None and died >= samples[-1][0] else None
    span = (samples[0][0], max(samples[-1][0], end or 0.0))
    curves = [c for c in memory.get("curves") or [] if len(_samples(c.get("samples"))) > 1]
    beside = [c for c in curves if not str(c["name"]).startswith("gpu")]
    events = [e for e in memory.get("events") or [] if e.get("kind") != "crash"]
    first = {"title": "This kernel", "samples": samples} | {
        key: memory.get(key) for key in ("limit_bytes", "limit_name")
    }
    made = [_picture(220, first, beside, span, events, end)]
    for card in (c for c in curves if str(c["name"]).endswith(".own_bytes")):
        prefix = str(card["name"]).partition(".")[0] + "."
        same = [c for c in curves if c is not card and str(c["name"]).startswith(prefix)]
        made.append(_picture(130, card, same, span, [], end))
    return made


def _picture(
    height: int,
    first: Json,
    others: list[Json],
    span: tuple[float, float],
    events: list[Json],
    end: float | None,
) -> Picture:
    drawn = [(str(c["title"]), _samples(c["samples"])) for c in (first, *others)]
    peak = max(value for _, samples in drawn for _, value in samples)
    limit = number_of(first.get("limit_bytes")) or 0.0
    on_axis = limit > 0 and peak >= limit * _SMALLEST_SHARE
    highest = max(peak, limit if on_axis else 0.0, 1024.0**2)
    floor = height - _FLOOR_ROOM
    scale_x = (WIDTH - _LEFT - _RIGHT) / max(span[1] - span[0], 1e-3)
    scale_y = (floor - _TOP) / (highest * _HEADROOM)

    def x(moment: float) -> float:
        return round(_LEFT + (min(max(moment, span[0]), span[1]) - span[0]) * scale_x, 1)

    def y(value: float) -> float:
        return round(floor - value * scale_y, 1)

    lines = tuple(
        Line(" ".join(f"{x(when)},{y(value)}" for when, value in samples), number, title)
        for number, (title, samples) in enumerate(drawn)
    )
    own = drawn[0][1]
    name = f"{first.get('limit_name') or 'limit'} {human_bytes(limit)}" if limit else ""
    top = max(value for _, value in own)
    part = (span[1] - span[0]) / _TIME_PARTS
    moments = [span[0] + part * number for number in range(_TIME_PARTS + 1)]
    return Picture(
        height=height,
        description=f"{drawn[0][0]}: peak {human_bytes(top)}" + (f"; {name}" if name else ""),
        lines=lines,
        area=f"{x(own[0][0])},{floor} {lines[0].points} {x(own[-1][0])},{floor}",
        values=tuple(
            Tick(_LEFT, y(value), re.sub(r"\.0+ ", " ", human_bytes(value)) if value else "0")
            for value in _value_ticks(highest)
        ),
        times=tuple(Tick(x(moment), floor, _clock(moment)) for moment in moments),
        events=tuple(
            Tick(x(when), floor - 8, str(event.get("label")), event.get("kind") in _BAD)
            for event in events
            if (when := number_of(event.get("time"))) is not None and span[0] <= when <= span[1]
        ),
        limit=y(limit) if on_axis else None,
        limit_text=name if on_axis or not name else f"↑ {name}",
        end=None if end is None else Tick(x(end), floor * 0.36, f"ended {_clock(end)}"),
    )


def _samples(value: object) -> Samples:
    found = []
    for row in list_of(value):
        if isinstance(row, (list, tuple)) and len(row) == 2:
            when, size = number_of(row[0]), number_of(row[1])
            if when is not None and size is not None and 0 <= size < 1e18 and 0 <= when < 1e11:
                found.append((when, size))
    return found


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(moment))


def _value_ticks(highest: float) -> list[float]:
    """Powers of two, which are round in binary units."""
    step = 2.0 ** math.ceil(math.log2(highest / 4))
    return [step * number for number in range(int(highest * 1.001 / step) + 1)]
