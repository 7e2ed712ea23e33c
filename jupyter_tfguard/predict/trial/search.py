"""Finds the largest batch size whose ``fit`` fits into the available memory: predicts it, then tries it.

Most of the time goes into the steps of large batches. So the first trial is of nearly the size that the quick estimate
names, and in most cases it is the only one: the search ends when a trial, or a batch a little larger that is extrapolated from
it, needs most of what a trial can have. A trial that needs clearly less corrects the estimate for the next one.

Batch sizes have at most five leading binary digits: 1, 2, ... 31, 32, 34, 36. A trial needs memory for a second copy of
TensorFlow, the weights and the data. So a batch that needs nearly all that is available cannot be tried: it is extrapolated.
"""

from __future__ import annotations

import bisect
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...training.plan import LARGEST_BATCH, FitPlan, rounded_down
from ...units import human_bytes, human_seconds
from ..answer import BatchChoice
from .data import data_shapes, model_structure
from .extrapolate import Quick, extrapolate, measured_bytes, quick_of_trial
from .process import TrialProcess
from .trial import LIMIT_FRACTION, Trial, need_here, trial, uncopied_in_trial

_RESERVE_FRACTION = 0.05
# Memory grows in steps: 1.23 times the batch of a trial needed 14 % more than extrapolated. At twice the batch of the
# largest trial, an extrapolation misses by 13 to 20 % in one case of ten.
_FAR = (0.15, 0.1)
# Margin of an extrapolation to a batch that is a little larger than the tried one.
_BESIDE = (0.02, 0.6)
# If an unfinished trial needed more than its extrapolation, all are corrected by the ratio and a margin for what the
# trial would have needed later. With a larger ratio they are not believed.
_RATIO_LIMIT = 1.5
_RATIO_MARGIN = 1.1
# Another trial takes as long as all before. So the search ends when a tried batch, or one a little larger that is
# extrapolated, needs this much of what a trial can have. From a tried batch that needs less than the good fraction, a
# batch a little larger is extrapolated.
_ENOUGH_FRACTION = 0.8
_GOOD_FRACTION = 0.9
_TRIALS_LIMIT = 8
_START_BATCH = 32
_DIGITS = 5
_FIRST_DIVISOR = 8  # without a quick estimate
_RIGHT_RATIO = 1.1  # of a trial to its quick estimate
# Without a quick estimate, or with a wrong one, a prediction for a much larger batch than the only one tried is not worth
# a trial.
_STEP_UP, _STEP_UP_CORRECTED = 4, 2
# Aim between what is enough and what is too much: predictions miss by some percent, less beside a batch that was tried.
_AIM_FRACTION, _NEAR_AIM_FRACTION = 0.92, 0.96
_NEAR = 1.5
_SURE = 1.2  # an extrapolation to at most so many times the tried batch needs no trial
# A trial that reached its limit would have needed more: how much is not known.
_OVER_LIMIT_FACTOR = 1.08
_NEAR_TRIALS = 4  # so often a little less is tried, before much less
# A fit needs a little more than the few steps of a trial.
_LATER_STEPS_FACTOR = 1.04

Show = Callable[[str], None]

# Trials that finished, by model structure, data shapes and batch size. They hold for this machine and process.
_finished: dict[tuple[Any, ...], Trial] = {}


def largest_batch(
    model: Any,
    plan: FitPlan,
    available_bytes: int,
    *,
    quick: Quick | None = None,
    process: TrialProcess | None = None,
    show: Show | None = None,
) -> BatchChoice:
    """Search the largest batch size, with a reserve of 5 % of the available memory.

    Args:
        model: A compiled model of Keras 3.
        plan: The fit.
        available_bytes: What ``fit`` may need in addition to the memory in use. Most of it is the limit of each child.
        quick: Estimates the bytes for a batch size, from the model alone.
        process: Starts the trials; without it, a new one.
        show: Called with a line about what is being tried, about twice a second.
    """
    budget_bytes = int(available_bytes * (1 - _RESERVE_FRACTION))
    search = _Search(plan, budget_bytes, int(LIMIT_FRACTION * available_bytes), quick)
    begun = time.monotonic()
    try:
        with (
            contextlib.nullcontext(process)
            if process
            else contextlib.closing(TrialProcess()) as running
        ):
            if quick is not None:  # not on a GPU, whose memory it does not use
                search.before_bytes = running.own_bytes()
            size: int | None = search.first()
            while size is not None and len(search.trials) < _TRIALS_LIMIT:
                if not search.take(_try(model, search, size, running, show)):
                    break
                size = search.next()
    except KeyboardInterrupt:
        if show is not None:
            show(search.interrupted())
        raise
    if show is not None:
        count, seconds = len(search.trials), human_seconds(time.monotonic() - begun)
        show(f"Tried {count} batch size{'s' * (count != 1)} in {seconds}.")
    chosen, need = search.result()
    return BatchChoice(chosen, need, tuple(search.trials), available_bytes)


@dataclass(slots=True)
class _Search:
    """What is known while searching.

    Attributes:
        plan: The fit.
        budget_bytes: What the chosen batch may need.
        limit_bytes: Memory limit of a trial, with TensorFlow, weights and data.
        quick: Estimates the bytes for a batch size.
        trials: In the order in which they were made.
        best: The largest batch that finished within the budget; None if none did.
        too_large: The smallest batch that is known not to fit.
        untried: The smallest batch whose trial reached its limit before it had needed the budget.
        untried_bytes: What it had needed until then.
        estimated: The largest batch that fits according to the quick estimate.
        before_bytes: What a trial holds before its fit, as far as is known.
    """

    plan: FitPlan
    budget_bytes: int
    limit_bytes: int
    quick: Quick | None
    trials: list[Trial] = field(default_factory=list)
    best: int | None = None
    too_large: int = 0
    untried: int = sys.maxsize
    untried_bytes: int = 0
    estimated: int | None = None
    before_bytes: int = 0

    def first(self) -> int:
        """The first batch to try: nearly what should fit; without a quick estimate an eighth of what the user asks for."""
        count = self.plan.sample_count or LARGEST_BATCH
        self.too_large = count + 1
        if self.quick is not None:
            sizes = _round_sizes(0, count)
            self.estimated = self._estimated(sizes, self._room_bytes())
            return self._estimated(sizes, _AIM_FRACTION * self._room_bytes())
        asked = min(self.plan.first_batch or _START_BATCH, count)
        return rounded_down(max(1, asked // _FIRST_DIVISOR), _DIGITS)

    def _estimated(self, sizes: list[int], room_bytes: float) -> int:
        """The largest of these sizes that should fit according to the quick estimate, or the smallest."""
        assert self.quick is not None
        return sizes[max(0, bisect.bisect_right(sizes, room_bytes, key=self.quick) - 1)]

    def take(self, found: Trial) -> bool:
        """Note a trial. False if it ended for another reason than memory, which ends the search."""
        self.trials.append(found)
        self.before_bytes = max(self.before_bytes, found.before_bytes or 0)
        size = found.batch_size
        need = need_here(found.peak_bytes or 0, self.plan, size)
        if found.finished and need <= self.budget_bytes:
            self.best = max(self.best or 0, size)
        elif found.finished or (
            found.is_too_large
            # A fit on the GPU has no more room than its trial.
            and (need > self.budget_bytes or found.gpu_limit_bytes is not None)
        ):
            self.too_large = min(self.too_large, size)
        elif found.is_too_large:
            if size < self.untried:
                self.untried, self.untried_bytes = size, need
        else:
            return False
        return True

    def next(self) -> int | None:
        """The largest batch that may fit according to the trials so far; None if the search is over."""
        end = min(self.too_large, self.untried)
        if self.best is None:
            return self._below(end) if end > 1 else None
        can_extrapolate = self._can_extrapolate()
        if self._is_enough(can_extrapolate):
            return None
        most = end - 1 if self._is_known() else min(end - 1, self.best * self._step_up())
        sizes = _round_sizes(self.best, most)
        if not self.trials[-1].finished and (self.quick is None or not self.trials[-2].finished):
            # Go half-way: what was predicted is far too large.
            sizes = sizes[: (len(sizes) + 1) // 2]
        if not can_extrapolate:
            return sizes[-1] if sizes else None
        near = [one for one in sizes if one <= _NEAR * self.best]
        room_bytes, over = self._room_bytes(), self._over_limit()
        found = self._largest(sizes, int(_AIM_FRACTION * room_bytes), over)
        beside = self._largest(near, int(_NEAR_AIM_FRACTION * room_bytes), over)
        return max(found or 0, beside or 0) or self._beyond_step(sizes)

    def _is_enough(self, can_extrapolate: bool) -> bool:
        """True if another trial is not worth its time."""
        best, room_bytes = self._best_bytes(), self._room_bytes()
        enough, good = _ENOUGH_FRACTION * room_bytes, _GOOD_FRACTION * room_bytes
        if not can_extrapolate:
            return best >= good
        if self.quick is None or not self._all_finished():
            return best >= enough
        chosen, need = self.result()
        assert self.best is not None
        assert chosen is not None
        assert need is not None
        if chosen == self.best:
            return best >= good
        return best >= enough or (need >= enough and chosen <= _SURE * self.best)

    def _all_finished(self) -> bool:
        return all(one.finished for one in self.trials)

    def _beyond_step(self, sizes: list[int]) -> int | None:
        """A larger batch to try although the quick estimate has a step of the pool before it; None if that failed once.

        The pool makes the step at a batch that differs from run to run.
        """
        assert self.best is not None
        if self.quick is None or not self._all_finished() or not self._best_bytes():
            return None
        most = self.best * _AIM_FRACTION * self._room_bytes() / self._best_bytes()
        place = bisect.bisect_right(sizes, most)
        return sizes[place - 1] if place else None

    def result(self) -> tuple[int | None, int | None]:
        """The chosen batch size and its bytes, tried or extrapolated."""
        if self.best is None:
            return None, None
        need, factor, room_bytes = self._best_bytes(), self._correction(), self._room_bytes()
        if need < _GOOD_FRACTION * self.budget_bytes and factor is not None:
            sizes = _round_sizes(self.best, min(self.too_large - 1, 2 * self.best))
            found = self._largest(sizes, self.budget_bytes, factor, _FAR)
            if found is None or factor * self._need(found) <= room_bytes:  # a trial has room for it
                is_good = need >= _GOOD_FRACTION * room_bytes
                found = None if is_good else self._largest(sizes, room_bytes, factor, _BESIDE)
            if found is not None:
                return found, int(factor * self._need(found))
        return self.best, need

    def _below(self, end: int) -> int:
        """The next batch to try if none has fitted yet."""
        is_near = self.quick is not None and len(self.trials) < _NEAR_TRIALS
        if not is_near or not self.trials[-1].peak_bytes:
            return rounded_down(end // _STEP_UP, _DIGITS)
        sizes, room_bytes = _round_sizes(0, end - 1), _AIM_FRACTION * self._room_bytes()
        if measured_bytes(self.trials):  # it finished, but needs too much
            return self._largest(sizes, int(room_bytes)) or 1
        assert self.quick is not None
        over = max(1.0, self.untried_bytes / max(1.0, self.quick(end)))
        over *= _OVER_LIMIT_FACTOR ** len(self.trials)
        return self._estimated(sizes, room_bytes / over)

    def _step_up(self) -> int:
        return _STEP_UP if self.quick is None else _STEP_UP_CORRECTED

    def _is_known(self) -> bool:
        """True if the need of a much larger batch can be predicted: the quick estimate was right, or has been corrected."""
        measured = measured_bytes(self.trials)
        if self.quick is None or len(measured) > 1:
            return len(measured) > 1
        size, found = measured.popitem()
        ratio = found / max(1.0, self.quick(size) - uncopied_in_trial(self.plan, size))
        return 1 / _RIGHT_RATIO < ratio < _RIGHT_RATIO

    def _best_bytes(self) -> int:
        assert self.best is not None
        return need_here(measured_bytes(self.trials)[self.best], self.plan, self.best)

    def _room_bytes(self) -> int:
        """What a trial can have."""
        return min(
            int(self.budget_bytes / _LATER_STEPS_FACTOR), self.limit_bytes - self.before_bytes
        )

    def _over_limit(self) -> float:
        """Factor for extrapolations below a batch whose trial reached the limit."""
        ratio = self.untried_bytes / max(1, self._need(self.untried)) if self.untried_bytes else 0.0
        return ratio * _OVER_LIMIT_FACTOR if ratio > 1 else 1.0

    def _correction(self) -> float | None:
        """Factor for extrapolations beyond the largest trial; None if there are none, or they cannot be believed."""
        last = self.trials[-1]
        if not (last.finished or last.is_too_large) or not self._can_extrapolate():
            return None
        ratio = self.untried_bytes / max(1, self._need(self.untried)) if self.untried_bytes else 0.0
        if ratio <= 1:
            return 1.0
        return ratio * _RATIO_MARGIN if ratio <= _RATIO_LIMIT else None

    def _can_extrapolate(self) -> bool:
        return self.quick is not None or len(measured_bytes(self.trials)) > 1

    def _largest(
        self,
        sizes: list[int],
        room_bytes: int,
        factor: float = 1.0,
        margin: tuple[float, float] = (0.0, 0.0),
    ) -> int | None:
        """The largest of these sizes whose extrapolated need fits.

        Args:
            sizes: In order, all larger than the largest that fitted.
            room_bytes: What it may need.
            factor: Corrects the extrapolated need.
            margin: Memory kept free for the error of the extrapolation, as parts of it: at least, and in addition for each
                time the largest batch that fitted.
        """
        best = self.best or 1

        def need(size: int) -> int:
            return int(self._need(size) * factor * (1 + margin[0] + margin[1] * (size / best - 1)))

        fitting = bisect.bisect_right(sizes, room_bytes, key=need)
        return sizes[fitting - 1] if fitting else None

    def _need(self, size: int) -> int:
        in_trial = quick_of_trial(self.quick, self.plan)
        found = extrapolate(measured_bytes(self.trials), size, in_trial)
        return need_here(found, self.plan, size)

    def trying(self, size: int, steps: int, peak_bytes: int | None) -> str:
        """A line about the trial that runs."""
        known = ""
        if self.best is not None:
            known = f" Best so far: {self.best}."
        elif self.estimated is not None:
            known = f" Estimated: {self.estimated}."
        number = len(self.trials) + 1
        if peak_bytes is None:
            return f"Trial {number}: batch_size={size} starts.{known}"
        done = f"{steps} step{'s' * (steps != 1)} done"
        return (
            f"Trial {number}: batch_size={size}, {done}, {human_bytes(peak_bytes)} needed.{known}"
        )

    def interrupted(self) -> str:
        """A line for the user who interrupts the search."""
        if self.best is None:
            return "Interrupted before a batch size had fitted."
        need = human_bytes(self._best_bytes())
        return f"Interrupted. Best so far: batch_size={self.best}, which needs {need}."


def _round_sizes(above: int, highest: int) -> list[int]:
    """The considered sizes larger than `above`, up to `highest`, in order."""
    sizes = []
    while highest > above and (size := rounded_down(highest, _DIGITS)) > above:
        sizes.append(size)
        highest = size - 1
    return sizes[::-1]


def _try(model: Any, search: _Search, size: int, process: TrialProcess, show: Show | None) -> Trial:
    """A trial, or the result of an equal one that finished."""

    def progress(steps: int, peak_bytes: int | None) -> None:
        if show is not None:
            show(search.trying(size, steps, peak_bytes))

    key = (model_structure(model), data_shapes(search.plan), size)
    if key not in _finished:
        progress(0, None)
        found = trial(
            model,
            search.plan,
            size,
            limit_bytes=search.limit_bytes,
            process=process,
            until_settled=True,
            show=progress,
        )
        if not found.finished:
            return found
        _finished[key] = found
    return _finished[key]
