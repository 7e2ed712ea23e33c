"""Raises an alarm if memory grows steadily over the epochs of a fit, the fits of a cell, or the runs of a cell.

For GPU memory only epochs are compared, by the bytes in TensorFlow's tensors, because its pool never releases memory.
The criterion is that of the crash report, :mod:`~..diagnosis.growth`. Points are taken at journal events in the main
thread; the sampling thread evaluates them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...kept_data import Holder, Kept
from ...memory.limits import Limit, kept_bytes, memory_limit
from ...record.events import (
    LOOP,
    CellStart,
    Emit,
    EpochEnd,
    Event,
    FitEnd,
    FitStart,
    LoopStart,
    MemoryGrowth,
)
from ...trend import FEWEST_POINTS, WARM_UP, Trend, floors, grown
from ...units import human_seconds
from .fit_floor import FitFloor
from .growing import Growing
from .hidden import results
from .measure import Measure
from .reachable import fit_objects, places_of

if TYPE_CHECKING:
    from ...diagnosis.leak import Leak, Per
    from ...training.gpu_memory import DeviceMemory
    from ...training.progress import FitProgress

_POINTS = 400
_CELLS = 20  # at most, whose runs are compared
_HOLDERS = 3
# Fraction of the rise; a container that grew by less does not explain it.
_HOLDER_FRACTION = 0.1
_JUDGE_SECONDS = 1.0
_POLL_SECONDS, _POLL_SHARE = (
    0.1,
    0.005,
)  # CPU time of readings: in any case, and of the time since the first round
_RESULTS_SECONDS = 0.04
_STEPS_SECONDS = 3.0  # between two points of a training loop
_PIPELINE = "the data pipeline"
# A cache takes a little more than its elements.
_FULL_TOLERANCE = 1.1


@dataclass
class _Rounds:
    """Repeated rounds: the epochs of a fit, the fits of a cell, or the runs of a cell."""

    per: str  # name of a :class:`~..diagnosis.growth.Per`
    points: list[tuple[float, float]] = field(default_factory=list)  # (number, bytes)
    starts: list[FitStart] = field(default_factory=list)
    growing: Growing = field(default_factory=Growing)
    began: float = field(default_factory=time.monotonic)
    count: int = 0
    poll_seconds: float = 0.0  # CPU time of all readings
    is_closed: bool = False  # an alarm was raised, or the fit is over
    lowest: float | None = None  # since the last epoch ended
    expected_bytes: float = 0.0  # growth since the first round that is no reason for an alarm

    def sampled(self, size: float) -> None:
        """Take a sample during an epoch, in bytes."""
        self.lowest = size if self.lowest is None else min(self.lowest, size)

    def add(self, number: float, size: float) -> None:
        """Add a point at the start or end of a round. `size`: bytes at that moment."""
        if not self.points:
            self.began = time.monotonic()
        if not self.points or number > self.points[-1][0]:
            self.points.append((float(number), float(size)))
        if len(self.points) > _POINTS:
            self.points = [self.points[0], *floors(self.points[1:], _POINTS // 2)]

    @property
    def span(self) -> int:
        """How many rounds after the first the newest point is."""
        return round(self.length)

    @property
    def length(self) -> float:
        """The same of rounds that are parts: of a training loop, hundreds of steps."""
        return self.points[-1][0] - self.points[0][0]

    @property
    def added_bytes(self) -> float:
        """Growth since the first round."""
        return self.points[-1][1] - self.points[0][1]

    @property
    def seconds_each(self) -> float:
        """Mean duration of a round."""
        return (time.monotonic() - self.began) / self.length if self.length else 0.0


class GrowthAlarm:
    """Raises the alarm for one kernel.

    Args:
        namespace: The user's global names.
        emit: Writes an event to the journal.
        fit: The newest fit; None if there was none.

    Attributes:
        floor: The lowest memory of the newest run, then and now.
    """

    def __init__(
        self,
        namespace: dict[str, Any],
        emit: Emit,
        fit: Callable[[], FitProgress | None],
    ) -> None:
        self._namespace = namespace
        self._emit = emit
        self._fit = fit
        self._count: int | None = None  # of the running cell
        self._fit_id: int | None = None  # of the newest fit
        self._epochs, self._gpu_epochs = _Rounds("EPOCH"), _Rounds("EPOCH")
        self._steps = _Rounds("STEPS")
        self._steps_due = 0.0
        self._loop_id: int | None = None  # of the newest training loop
        self._fits = _Rounds("FIT")
        self._cells: dict[str, _Rounds] = {}
        self._fresh: list[_Rounds] = []  # rounds with a new point
        self._due = 0.0
        self.floor = FitFloor()
        self._floor_of: FitProgress | None = None

    def take(self, event: Event) -> None:
        """Take an event of the journal; takes a few microseconds."""
        if isinstance(event, EpochEnd):
            for rounds in (self._epochs, self._gpu_epochs):
                lowest, rounds.lowest = rounds.lowest, None
                if lowest is not None and event.epoch is not None:
                    self._point(rounds, event.epoch, lowest)
        elif isinstance(event, FitStart) and event.what == "fit":
            self._epochs, self._gpu_epochs = _Rounds("EPOCH"), _Rounds("EPOCH")
            self._fit_id = event.fit_id
            self._fits.starts.append(event)
            del self._fits.starts[:-_POINTS]
            if (size := event.size_bytes) is not None and event.fit_id is not None:
                self._point(self._fits, event.fit_id, size)
        elif isinstance(event, LoopStart) and event.what == LOOP:
            self._steps, self._loop_id = _Rounds("STEPS"), event.fit_id
        elif isinstance(event, FitEnd) and event.fit_id == self._fit_id:
            self._epochs.is_closed = self._gpu_epochs.is_closed = True
        elif isinstance(event, FitEnd) and event.fit_id == self._loop_id:
            self._steps.is_closed = True
        elif isinstance(event, CellStart):
            self._count, self._fits = event.execution_count, _Rounds("FIT")
            if event.cell_id is not None and event.size_bytes is not None:
                rounds = self._runs_of(event.cell_id)
                self._point(rounds, rounds.count, event.size_bytes)

    def models(self) -> Holder | None:
        """The new models that the fits of the running cell were of; None if it does not build them in a loop."""
        from ...diagnosis.fitted_models import OWN_PROCESS, FittedModels

        points = self._fits.points
        found = FittedModels.of(self._fits.starts)
        if found is None or not found.are_built_in_a_loop or len(points) <= WARM_UP + 1:
            return None
        added = round(points[-1][1] - points[WARM_UP][1])
        text = f"This cell builds new models: {found.text}"
        return Holder("new models", text, OWN_PROCESS, added, count=found.count)

    def _runs_of(self, cell_id: str) -> _Rounds:
        rounds = self._cells.pop(cell_id, None) or _Rounds("RUN")
        rounds.count += 1
        self._cells[cell_id] = rounds  # newest last
        if len(self._cells) > _CELLS:
            del self._cells[next(iter(self._cells))]
        return rounds

    def _take_loop(self, size: float) -> None:
        """A training loop has no rounds of its own: compare its memory every few seconds, by its steps."""
        loop = self._fit()
        if loop is None or not loop.is_loop or loop.step is None or loop.fit_id != self._loop_id:
            return
        self._steps.sampled(size)
        now = time.monotonic()
        lowest = self._steps.lowest
        if now < self._steps_due or self._steps.is_closed or lowest is None:
            return
        self._steps_due, self._steps.lowest = now + _STEPS_SECONDS, None
        from ...diagnosis.leak import STEPS  # only here: few kernels need it

        self._point(self._steps, loop.step / STEPS, lowest)

    def _point(self, rounds: _Rounds, number: float, size: float) -> None:
        rounds.add(number, size)
        if rounds.is_closed or len(rounds.points) < 2:  # most cells run once
            return
        self._fresh.append(rounds)
        began = time.thread_time()
        if rounds.poll_seconds > _POLL_SECONDS + _POLL_SHARE * (time.monotonic() - rounds.began):
            return  # very short rounds: not all of them are looked at
        rounds.growing.poll(self._places())
        rounds.poll_seconds += time.thread_time() - began

    def _places(self) -> Iterator[tuple[str, Any]]:
        return places_of(self._namespace, fit_objects(self._fit()))

    def _kept_data(self) -> Sequence[Kept]:
        fit = self._fit()
        return () if fit is None else fit.kept_data

    def sampled(self, values: Mapping[str, float]) -> None:
        """Take a sample; called in the sampling thread."""
        size = kept_bytes(values)
        if size is not None:
            self._epochs.sampled(size)
            self._take_loop(size)
            if (fit := self._fit()) is not None and fit.active:
                if fit is not self._floor_of:
                    self._floor_of, self.floor = fit, FitFloor()
                self.floor.sampled(size, fit.steps_begun)
        now = time.monotonic()
        if not self._fresh or now < self._due:
            return
        fresh, self._fresh, self._due = self._fresh, [], now + _JUDGE_SECONDS
        for rounds in fresh:
            points = list(rounds.points)
            is_ready = len(points) > FEWEST_POINTS and not rounds.is_closed
            is_ready &= rounds.added_bytes > rounds.expected_bytes
            if is_ready and (trend := grown(points)) is not None:
                self._judge(rounds, trend, values)

    def sampled_gpu(self, devices: Sequence[DeviceMemory]) -> None:
        """Take a sample of TensorFlow's allocators."""
        self._gpu_epochs.sampled(sum(one.in_use_bytes for one in devices))

    def _judge(self, rounds: _Rounds, trend: Trend, values: Mapping[str, float]) -> None:
        # Imported only here: few kernels need it.
        from ...diagnosis.fitted_models import FittedModels
        from ...diagnosis.leak import Leak, Per, matters

        is_gpu = rounds is self._gpu_epochs
        limit = None if is_gpu else memory_limit(values)
        used = None if limit is None else limit.used(values)
        room = None if limit is None or used is None else max(0.0, limit.size_bytes - used)
        per = Per[rounds.per]
        over = per.count_text(rounds.length if per is Per.STEPS else rounds.span + 1)
        growth = Leak(per, trend, over, models=FittedModels.of(rounds.starts))
        if not matters(growth, limit and limit.size_bytes, room, self._fit()):
            return
        # First read at the second round.
        holders = rounds.growing.grown(self._places(), *_since_second(rounds, per), gpu=is_gpu)
        if per is Per.RUN and (kept := results(self._namespace, Measure(_RESULTS_SECONDS))):
            holders.insert(0, kept)
        least = _HOLDER_FRACTION * trend.rise
        holders = [one for one in holders if one.added_bytes is None or one.added_bytes >= least]
        holders = holders[:_HOLDERS]
        data = self._kept_data() if rounds is self._epochs else ()
        full = _full_bytes(holders, data, rounds.added_bytes)
        if full is not None and (room is None or full - rounds.added_bytes <= room):
            rounds.expected_bytes = full
            return
        rounds.is_closed = True
        if full is not None and not holders:
            holders = [Holder(_PIPELINE, one.text, added_bytes=one.size_bytes) for one in data]
        what = "GPU memory" if is_gpu else "Memory"
        lines = [f"{what} grew steadily over {over}: {growth.rate}."]
        if limit is not None and room is not None:
            lines += _outlook(rounds, growth, limit, room)
        ways = dict.fromkeys(one.how for one in holders if one.how)
        lines += [*(one.text for one in holders), *ways] or [_advice(growth)]
        self._emit(
            MemoryGrowth(execution_count=self._count, lines=tuple(lines), holders=tuple(holders))
        )


def _full_bytes(
    holders: Sequence[Holder], kept: Sequence[Kept], added_bytes: float
) -> float | None:
    """What data that are kept on purpose will take when they are full; None if they do not explain the growth."""
    bounded = [one for one in holders if one.full_bytes is not None]
    if bounded and 2 * sum(one.added_bytes or 0 for one in bounded) >= added_bytes:
        return float(sum(one.full_bytes or 0 for one in bounded))
    full = _FULL_TOLERANCE * sum(one.size_bytes for one in kept)
    return full if full >= added_bytes and not holders else None


def _since_second(rounds: _Rounds, per: Per) -> tuple[str, int]:
    """Unit and number of the rounds since the second one."""
    from ...diagnosis.leak import STEPS, Per

    if per is Per.STEPS:
        return "step", round(STEPS * (rounds.points[-1][0] - rounds.points[1][0]))
    return per.unit, rounds.span - 1


def _outlook(rounds: _Rounds, growth: Leak, limit: Limit, room: float) -> list[str]:
    left = growth.left(room)
    if left is None:
        return []
    seconds = human_seconds(room / growth.trend.slope * rounds.seconds_each)
    name = limit.text()
    return [f"At this rate it reaches the limit of {name} in {left}, {seconds} after this alarm."]


def _advice(growth: Leak) -> str:
    from ...diagnosis.memory_advice import general_leak_advice

    advice = general_leak_advice(growth)
    return f"{advice.title} {advice.text}"
