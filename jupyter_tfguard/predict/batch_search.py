"""Finds the largest batch size whose ``fit`` fits into the available memory: predicts it, then tries it.

Batch sizes have at most four leading binary digits: 1, 2, ... 15, 16, 18, 20, ... 30, 32, 36. A trial needs memory for a
second copy of TensorFlow, the weights and the data, within the same available memory. So a batch that needs nearly all of
it cannot be tried: it is extrapolated from the trials, and the result says so.
"""

from __future__ import annotations

import bisect
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..units import human_bytes
from .batches import LARGEST_BATCH, batch_size, rounded_down, sample_count
from .bound import flat_layers, slots_per_weight
from .extrapolate import Quick, extrapolate, measured_bytes, quick_of_trial
from .graph import is_of_keras
from .sizes import leaves
from .trial import LIMIT_FRACTION, Trial, need_here, trial

_RESERVE_FRACTION = 0.05
# Memory grows in steps: 1.23 times the batch of a trial needed 14 % more than extrapolated. At twice the batch of the
# largest trial, an extrapolation misses by 13 to 20 % in one case of ten.
_STEP_FRACTION = 0.15
_DOUBLE_FRACTION = 0.25
# If an unfinished trial needed more than its extrapolation, all are corrected by the ratio and a margin for what the
# trial would have needed later. With a larger ratio they are not believed.
_RATIO_LIMIT = 1.5
_RATIO_MARGIN = 1.1
# A tried batch that needs this much of the budget is preferred to a larger one that could not be tried.
_GOOD_FRACTION = 0.9
_TRIALS_LIMIT = 8
_START_BATCH = 32
_DIGITS = 4
# A prediction for a much larger batch than any tried one is not worth a trial.
_STEP_UP = 4

# Trials that finished, by model structure, data shapes and batch size. They hold for this machine and process.
_finished: dict[tuple[Any, ...], Trial] = {}


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """The result of a search.

    Attributes:
        batch_size: The largest batch size that fits; None if none does.
        peak_bytes: What it needs: measured by its trial, or extrapolated from smaller ones; None without a batch size.
        trials: All trials, in the order in which they were made. If the last one ended for another reason than memory,
            the search stopped there.
        available_bytes: What was available.
    """

    batch_size: int | None
    peak_bytes: int | None
    trials: tuple[Trial, ...]
    available_bytes: int

    @property
    def was_tried(self) -> bool:
        """True if a trial of this batch size finished."""
        return any(one.finished and one.batch_size == self.batch_size for one in self.trials)

    def text(self) -> str:
        """The result for the user."""
        return "\n".join([self.headline(), *(f"  {_line(one)}" for one in self.trials)])

    def headline(self) -> str:
        """The batch size with its need, a line or two."""
        if self.batch_size is None:
            return "No batch size fits."
        need, available = human_bytes(self.peak_bytes), human_bytes(self.available_bytes)
        if self.was_tried:
            return f"batch_size={self.batch_size} is the largest that fits: it needed {need} of {available} available."
        return (
            f"batch_size={self.batch_size} is the largest that should fit: it needs about {need} of {available} available.\n"
            "It was not tried, because a trial needs more memory than the fit itself."
        )

    def __repr__(self) -> str:
        return self.text()


def _line(one: Trial) -> str:
    return f"batch_size={one.batch_size}: {one.ending_text()}, {human_bytes(one.peak_bytes)}"


def largest_batch(
    model: Any,
    fit_arguments: Mapping[str, Any],
    available_bytes: int,
    *,
    quick: Quick | None = None,
) -> BatchChoice:
    """Search the largest batch size, with a reserve of 5 % of the available memory.

    Args:
        model: A compiled model of Keras 3.
        fit_arguments: The arguments of ``fit``, by name.
        available_bytes: What ``fit`` may need in addition to the memory in use. Most of it is the limit of each child.
        quick: Estimates the bytes for a batch size, from the model alone.
    """
    budget_bytes = int(available_bytes * (1 - _RESERVE_FRACTION))
    search = _Search(fit_arguments, budget_bytes, int(LIMIT_FRACTION * available_bytes), quick)
    size: int | None = search.first()
    while size is not None and len(search.trials) < _TRIALS_LIMIT:
        found = _try(model, fit_arguments, size, search.limit_bytes)
        if not search.take(found):
            break
        size = search.next()
    chosen, need = search.result()
    return BatchChoice(chosen, need, tuple(search.trials), available_bytes)


@dataclass(slots=True)
class _Search:
    """What is known while searching.

    Attributes:
        arguments: The arguments of ``fit``, by name.
        budget_bytes: What the chosen batch may need.
        limit_bytes: Memory limit of a trial, with TensorFlow, weights and data.
        quick: Estimates the bytes for a batch size.
        trials: In the order in which they were made.
        best: The largest batch that finished within the budget; None if none did.
        too_large: The smallest batch that is known not to fit.
        untried: The smallest batch whose trial reached its limit before it had needed the budget.
        untried_bytes: What it had needed until then.
    """

    arguments: Mapping[str, Any]
    budget_bytes: int
    limit_bytes: int
    quick: Quick | None
    trials: list[Trial] = field(default_factory=list)
    best: int | None = None
    too_large: int = 0
    untried: int = sys.maxsize
    untried_bytes: int = 0

    def first(self) -> int:
        """The first batch to try: one that should need half of the budget, or an eighth of what the user asks for."""
        count = sample_count(self.arguments) or LARGEST_BATCH
        self.too_large = count + 1
        if self.quick is not None:
            sizes = _round_sizes(0, count)
            fitting = bisect.bisect_right(sizes, self.budget_bytes / 2, key=self.quick)
            return sizes[max(0, fitting - 1)]
        asked = min(batch_size(self.arguments) or _START_BATCH, count)
        return rounded_down(max(1, asked // 8), _DIGITS)

    def take(self, found: Trial) -> bool:
        """Note a trial. False if it ended for another reason than memory, which ends the search."""
        self.trials.append(found)
        size = found.batch_size
        need = need_here(found.peak_bytes or 0, self.arguments, size)
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
            return rounded_down(end // _STEP_UP, _DIGITS) if end > 1 else None
        sizes = _round_sizes(self.best, min(end - 1, self.best * _STEP_UP))
        if not self.trials[-1].finished:  # it tells little: go half-way
            sizes = sizes[: (len(sizes) + 1) // 2]
        if not self._can_extrapolate():
            return sizes[-1] if sizes else None
        before = max(one.before_bytes or 0 for one in self.trials)
        return self._largest(sizes, min(self.budget_bytes, self.limit_bytes - before))

    def result(self) -> tuple[int | None, int | None]:
        """The chosen batch size and its bytes, tried or extrapolated."""
        if self.best is None:
            return None, None
        need = need_here(measured_bytes(self.trials)[self.best], self.arguments, self.best)
        factor = self._correction()
        if need < _GOOD_FRACTION * self.budget_bytes and factor is not None:
            sizes = _round_sizes(self.best, min(self.too_large - 1, 2 * self.best))
            beyond = self._largest(sizes, self.budget_bytes, factor, with_margin=True)
            if beyond is not None:
                return beyond, int(factor * self._need(beyond))
        return self.best, need

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
        self, sizes: list[int], room_bytes: int, factor: float = 1.0, *, with_margin: bool = False
    ) -> int | None:
        """The largest of these sizes whose extrapolated need fits.

        Args:
            sizes: In order, all larger than the largest that fitted.
            room_bytes: What it may need.
            factor: Corrects the extrapolated need.
            with_margin: Keep memory free for the error of the extrapolation.
        """
        best = self.best or 1

        def need(size: int) -> int:
            found = self._need(size) * factor
            if with_margin:
                beyond = size / best - 1
                found *= 1 + _STEP_FRACTION + (_DOUBLE_FRACTION - _STEP_FRACTION) * beyond
            return int(found)

        fitting = bisect.bisect_right(sizes, room_bytes, key=need)
        return sizes[fitting - 1] if fitting else None

    def _need(self, size: int) -> int:
        in_trial = quick_of_trial(self.quick, self.arguments)
        found = extrapolate(measured_bytes(self.trials), size, in_trial)
        return need_here(found, self.arguments, size)


def _round_sizes(above: int, highest: int) -> list[int]:
    """The considered sizes larger than `above`, up to `highest`, in order."""
    sizes = []
    while highest > above and (size := rounded_down(highest, _DIGITS)) > above:
        sizes.append(size)
        highest = size - 1
    return sizes[::-1]


def _try(model: Any, arguments: Mapping[str, Any], size: int, limit_bytes: int) -> Trial:
    """A trial, or the result of an equal one that finished."""
    key = (_structure(model), _shapes(arguments), size)
    if key not in _finished:
        found = trial(model, arguments, size, limit_bytes=limit_bytes)
        if not found.finished:
            return found
        _finished[key] = found
    return _finished[key]


def _structure(model: Any) -> tuple[Any, ...]:
    """What decides the memory of a model: its layers, if they are Keras' own and form a graph; else the model itself."""
    layers = flat_layers(model)
    shapes = [_output_shapes(layer) for layer in layers]
    if not layers or not all(shapes) or not all(is_of_keras(type(layer)) for layer in layers):
        return (weakref.ref(model),)
    optimizer = getattr(model, "optimizer", None)
    parts = tuple((_config(layer), shape) for layer, shape in zip(layers, shapes, strict=True))
    return type(model), parts, type(optimizer), slots_per_weight(optimizer), str(model.loss)


def _config(layer: Any) -> str:
    values = {name: value for name, value in layer.get_config().items() if name != "name"}
    return f"{type(layer).__name__} {values}"


def _output_shapes(layer: Any) -> tuple[str, ...]:
    nodes = getattr(layer, "_inbound_nodes", ())
    return tuple(str(output.shape) for node in nodes for output in node.outputs)


def _shapes(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Shapes of one sample and dtypes of the arrays; the declared elements of a dataset."""
    values = leaves([arguments.get(name) for name in ("x", "y", "sample_weight")])
    return tuple(
        str(getattr(one, "element_spec", None) or (one.shape[1:], getattr(one, "dtype", None)))
        for one in values
        if hasattr(one, "element_spec") or hasattr(one, "shape")
    )
