"""The curves of a report as shapes to be drawn without any script: where each line, tick and label lies."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..units import human_bytes

WIDTH = 920
_LEFT, _RIGHT, _TOP, _FLOOR_ROOM = 62, 14, 16, 22
_HEADROOM = 1.14
_SMALLEST_SHARE = (
    1 / 8
)  # below it the curve would lie flat on the floor: then the limit stays outside
_TIME_TICKS = 6
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_LETTER_PIXELS = 6.2
_SIGNS = {
    "fit": "▸",
    "epoch": "·",
    "checkpoint": "◆",
    "warning": "▲",
    "gpu_oom": "✕",
    "hang": "■",
}
_HIGH = ("checkpoint", "warning", "gpu_oom", "hang")
_BAD = ("warning", "gpu_oom", "hang")
# Where room is short, the highest is named first.
_RANKS = dict.fromkeys(_BAD, 3) | {"fit": 2, "epoch": 0}

Json = dict[str, Any]
Samples = list[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """A line: `points` as SVG wants them, its number (0 is the first) and what it is."""

    points: str
    number: int
    title: str


@dataclass(frozen=True)
class Tick:
    """Something with a text at a place; `side` is which end of the text that is. An empty text: there was no room."""

    x: float
    y: float
    text: str
    is_bad: bool = False
    side: str = "start"


@dataclass(frozen=True)
class Picture:
    """One chart, in pixels of its view box.

    Attributes:
        description: All of it in a sentence.
        limit: Where its line lies; None where it is outside, or there is none.
        limit_text: Its name, with an arrow when it lies outside.
        area: The surface below the first line.
        end: Where the death is; None where it is not known.
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
        """Where nothing is in use."""
        return self.height - _FLOOR_ROOM


def pictures(memory: Json | None) -> list[Picture]:
    """The kernel's memory with what lay beside it, then each GPU; none without samples."""
    samples = _samples((memory or {}).get("samples"))
    if memory is None or len(samples) < 2:
        return []
    died = _number(memory.get("died"))
    end = died if died is not None and died >= samples[-1][0] else None
    span = (samples[0][0], max(samples[-1][0], end or 0.0))
    curves = [c for c in memory.get("curves") or [] if len(_samples(c.get("samples"))) > 1]
    beside = [c for c in curves if not str(c["name"]).startswith("gpu")]
    events = [e for e in memory.get("events") or [] if e.get("kind") != "death"]
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
    limit = _number(first.get("limit_bytes")) or 0.0
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
    return Picture(
        height=height,
        description=f"{drawn[0][0]}: highest {human_bytes(top)}" + (f"; {name}" if name else ""),
        lines=lines,
        area=f"{x(own[0][0])},{floor} {lines[0].points} {x(own[-1][0])},{floor}",
        values=tuple(
            Tick(_LEFT, y(value), re.sub(r"\.0+ ", " ", human_bytes(value)) if value else "0")
            for value in _value_ticks(highest)
        ),
        times=tuple(Tick(x(moment), floor, _clock(moment)) for moment in _time_ticks(*span)),
        events=_events(events, x, span, floor),
        limit=y(limit) if on_axis else None,
        limit_text=name if on_axis or not name else f"↑ {name}",
        end=None if end is None else Tick(x(end), floor * 0.36, f"ended {_clock(end)}"),
    )


def _samples(value: object) -> Samples:
    found = []
    for row in value if isinstance(value, list) else ():
        if isinstance(row, (list, tuple)) and len(row) == 2:
            when, size = _number(row[0]), _number(row[1])
            if when is not None and size is not None and 0 <= size < 1e18 and 0 <= when < 1e11:
                found.append((when, size))
    return found


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(moment))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e18 else None


def _value_ticks(highest: float) -> list[float]:
    """Powers of two, which are round in binary units."""
    step = 2.0 ** math.ceil(math.log2(highest / 4))
    return [step * number for number in range(int(highest * 1.001 / step) + 1)]


def _time_ticks(begin: float, end: float) -> list[float]:
    span = end - begin
    step = next((s for s in _STEPS if span / s <= _TIME_TICKS), None)
    if step is None:
        step = math.ceil(span / _TIME_TICKS / 86400) * 86400
    first = math.ceil(begin / step) * step
    return [float(moment) for moment in range(first, int(end) + 1, step)]


def _events(
    events: list[Json], x: Callable[[float], float], span: tuple[float, float], floor: float
) -> tuple[Tick, ...]:
    """A name that has no room on its tick's right stands on its left, or is left out; its tick and sign stay."""
    taken: list[tuple[bool, float, float]] = []
    found = []
    for event in sorted(events, key=lambda event: -_RANKS.get(str(event.get("kind")), 1)):
        when, kind = _number(event.get("time")), str(event.get("kind"))
        if when is None or not span[0] <= when <= span[1]:
            continue
        high, sign = kind in _HIGH, _SIGNS.get(kind, "")
        place, label = x(when), str(event.get("label"))
        y = floor - (24 if high else 8)
        for text, side in (
            (f"{sign} {label}".strip(), "start"),
            (f"{label} {sign}".strip(), "end"),
            (sign, "start"),
        ):
            width = len(text) * _LETTER_PIXELS
            start = place - width if side == "end" else place
            end = start + width + 8
            if (
                text
                and start >= 0
                and end < WIDTH - _RIGHT + 8
                and not any(row == high and a < end and start < b for row, a, b in taken)
            ):
                taken.append((high, start, end))
                found.append(Tick(place, y, text, kind in _BAD, side))
                break
        else:
            found.append(Tick(place, y, "", kind in _BAD))
    return tuple(found)
