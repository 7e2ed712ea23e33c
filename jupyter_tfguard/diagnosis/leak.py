"""Steady growth of memory: compared at the same point of each epoch, of each fit in a loop, or of each run of a cell.

A leak raises the lowest memory use of each epoch. Batches, caches and validation only use memory above it temporarily. Not
reported as growth: the warm-up of the first epoch, use that levels off, a single jump, a sawtooth.

Nearly all of the data is self-reported by the kernel, so findings based on it are never more than *likely*.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..memory.limits import Limit, memory_in_use
from ..trend import LEAST_BYTES, WARM_UP, Trend, grown, trend
from ..units import human_bytes, human_seconds
from .activity import last_cell, last_fit
from .finding import Fact, Source
from .fitted_models import FittedModels
from .limits_seen import last_values, memory_limit_of
from .moments import Moment, cell_runs, epoch_ends, fit_events, fit_starts
from .observed import Observed

_TIME_PARTS = 24
_TIME_SECONDS = 600.0
_TEARDOWN_SECONDS = 1.0
_RUNNING_POINTS = 5
_LARGEST_BYTES = 1e15
_LEAST_FRACTION = 0.1

Curve = Sequence[tuple[float, float]]


# Growth of a training loop is counted per so many steps: of a single step it is too small a number.
STEPS = 100


class Per(enum.Enum):
    """The unit in which growth is counted."""

    EPOCH = "per epoch"
    FIT = "per fit"
    RUN = "per run"
    MINUTE = "per minute"
    STEPS = "per 100 steps"  # of a training loop

    @property
    def unit(self) -> str:
        """``epoch``"""
        return self.value.removeprefix("per ")

    def count_text(self, count: float) -> str:
        """``9 epochs``; of a training loop the steps, ``900 steps``."""
        if self is Per.STEPS:
            return f"{round(STEPS * count):,} steps"
        return f"{round(count)} {self.unit}{'s' if round(count) > 1 else ''}"


class Epochs(Protocol):
    """A fit, as far as growth depends on it.

    Attributes:
        epoch: The running epoch, from 1; None before the first.
        epochs: How many are planned; None if unknown.
    """

    @property
    def epoch(self) -> int | None: ...

    @property
    def epochs(self) -> int | None: ...


@dataclass(frozen=True)
class Leak:
    """Memory that rises steadily.

    Attributes:
        per: Unit of the slope.
        trend: The trend, in bytes.
        over: The span in which it was observed: ``41 epochs``.
        source: Where the data comes from.
        models: The models that were fitted; None if unknown.
    """

    per: Per
    trend: Trend
    over: str
    source: Source = Source.KERNEL
    models: FittedModels | None = None

    @property
    def rate(self) -> str:
        """``+312 MiB per epoch (95 %: 290 to 334 MiB)``."""
        t = self.trend
        low, high = human_bytes(t.low), human_bytes(t.high)
        if low.split()[-1] == high.split()[-1]:
            low = low.split()[0]
        return f"+{human_bytes(t.slope)} {self.per.value} (95 %: {low} to {high})"

    @property
    def fact(self) -> Fact:
        """The growth as a piece of evidence."""
        text = f"It grew steadily over {self.over}: {self.rate}, {human_bytes(self.trend.rise)} in total"
        return Fact(self.source, text)

    def left(self, room_bytes: float) -> str | None:
        """``about 9 epochs`` until this many more bytes are in use; None when that is less than one, or never."""
        found = self.trend.units_left(0.0, room_bytes)
        if found is None or not 1 <= found[0] < 1e6:
            return None
        if self.per is Per.MINUTE:
            return f"about {human_seconds(60 * found[0])}"
        return f"about {self.per.count_text(found[0])}"


def host_growth(seen: Observed) -> Leak | None:
    """Growth of the kernel's host memory; None when it did not rise steadily, or too little to matter."""
    points = seen.timeline("process.rss_bytes")
    curve = _kept(seen, [(p.time, p.lowest) for p in points if p.lowest > 0])
    found = steady_growth(seen, curve)
    limit = memory_limit_of(seen)
    if found is None:
        return None
    room = limit and room_bytes(seen, limit)
    return found if matters(found, limit and limit.size_bytes, room, last_fit(seen)) else None


def steady_growth(
    seen: Observed, curve: Curve, *, host: bool = True, source: Source = Source.KERNEL
) -> Leak | None:
    """The growth of a curve of (Unix seconds, bytes), per epoch, fit, run or minute, depending on the journal.

    Args:
        host: True if the curve is the kernel's host memory, which the journal also records at each fit and cell.
        source: Where the curve comes from.
    """
    end = seen.died - _TEARDOWN_SECONDS if seen.died else float("inf")
    curve = [(when, size) for when, size in curve if when < end and size < _LARGEST_BYTES]
    ends = epoch_ends(seen)
    if found := grown(_at_epochs(seen, ends, curve)):
        return Leak(Per.EPOCH, found, f"{ends[-1].number - ends[0].number + 1} epochs", source)
    for per, moments, what in (
        (Per.FIT, fit_starts(seen), "fits"),
        (Per.RUN, cell_runs(seen), "runs of"),
    ):
        sizes = _at_moments(moments) if host else _at_curve(moments, curve)
        if found := grown(sizes):
            over = f"{len(moments)} {what}" + (f" {moments[-1].name}" if per is Per.RUN else "")
            models = FittedModels.of(fit_events(seen)) if per is Per.FIT else None
            return Leak(per, found, over, source, models)
    return None if ends else _by_time(seen, curve, source)


def matters(found: Leak, limit_bytes: float | None, room: float | None, fit: Epochs | None) -> bool:
    """True if the growth used a large part of the limit, or would use the rest before the fit ends.

    Args:
        limit_bytes: The limit. room: What is left of it, in bytes. None if unknown.
        fit: The newest fit; None without one.
    """
    rise = found.trend.rise
    if rise < LEAST_BYTES or limit_bytes is None or rise >= _LEAST_FRACTION * limit_bytes:
        return rise >= LEAST_BYTES
    if found.per is not Per.EPOCH or room is None or fit is None or not fit.epochs or not fit.epoch:
        return False
    left = found.trend.units_left(0.0, room)
    return left is not None and left[0] <= fit.epochs - fit.epoch


def room_bytes(seen: Observed, limit: Limit) -> float:
    """How much was left to the limit at the last sample."""
    used = memory_in_use(limit, last_values(seen))
    return max(0.0, limit.size_bytes - (used or 0.0))


def _at_epochs(seen: Observed, ends: list[Moment], curve: Curve) -> Curve:
    """(epoch, lowest memory in it); the running epoch counts once it has enough samples."""
    spans = []
    for before, now in zip([None, *ends], ends, strict=False):
        began = before.time if before is not None else now.time - (now.seconds or 0.0)
        spans.append((now.number, began, now.time))
    if ends and last_fit(seen) is not None:
        spans.append((ends[-1].number + 1, ends[-1].time, float("inf")))
    found, at = [], 0
    for number, began, ended in spans:
        while at < len(curve) and curve[at][0] <= began:
            at += 1
        inside = []
        while at < len(curve) and curve[at][0] <= ended:
            inside.append(curve[at][1])
            at += 1
        if inside and (ended < float("inf") or len(inside) >= _RUNNING_POINTS):
            found.append((float(number), min(inside)))
    return found


def _at_moments(moments: list[Moment]) -> Curve:
    known = ((m.number, m.kept_bytes) for m in moments)
    return [(float(n), float(size)) for n, size in known if size and size < _LARGEST_BYTES]


def _at_curve(moments: list[Moment], curve: Curve) -> Curve:
    """(number, last value before the moment)."""
    found, at = [], 0
    for moment in moments:
        while at < len(curve) and curve[at][0] <= moment.time:
            at += 1
        if at:
            found.append((float(moment.number), curve[at - 1][1]))
    return found


def _by_time(seen: Observed, curve: Curve, source: Source) -> Leak | None:
    """Growth per minute within one long-running cell, for which no epochs, fits or runs were recorded."""
    cell = last_cell(seen)
    if cell is None or not cell.running or cell.time is None:
        return None
    inside = [(when, size) for when, size in curve if when >= cell.time]
    if not inside or inside[-1][0] - inside[0][0] < _TIME_SECONDS:
        return None
    began, seconds = inside[0][0], inside[-1][0] - inside[0][0]
    width = seconds / _TIME_PARTS
    parts: dict[int, float] = {}
    for when, size in inside:
        part = min(int((when - began) / width), _TIME_PARTS - 1)
        parts[part] = min(size, parts.get(part, size))
    found = trend([(n * width / 60, parts[n]) for n in sorted(parts) if n >= WARM_UP])
    if found is None or not found.is_steady_growth:
        return None
    return Leak(Per.MINUTE, found, human_seconds(seconds), source)


def _kept(seen: Observed, curve: Curve) -> Curve:
    """Without pages of files, which the system can drop, and with swapped-out memory, which the process still holds."""
    files, swap = (
        [(p.time, p.lowest) for p in seen.timeline(f"process.{name}_bytes")]
        for name in ("file", "swap")
    )
    return [
        (when, max(0.0, size - in_files) + in_swap)
        for (when, size), in_files, in_swap in zip(
            curve, _at(files, curve), _at(swap, curve), strict=True
        )
    ]


def _at(known: Curve, moments: Curve) -> list[float]:
    """The newest value at each moment; the first value before it is known, and 0 if there is none."""
    found, at = [], 0
    for when, _ in moments:
        while at < len(known) and known[at][0] <= when:
            at += 1
        found.append(known[max(0, at - 1)][1] if known else 0.0)
    return found
