"""Predicts the memory of a batch that cannot be run, from trials of smaller batches.

The true memory is not a smooth function of the batch: TensorFlow's pool grows in steps. The quick estimate knows these
steps; a line through the trials corrects it. The errors are in tests/bench/RESULTS.md.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...training.plan import FitPlan
from .trial import Trial, trial, uncopied_in_trial

Quick = Callable[[int], float]

# Beyond, the slope comes from batches that are too similar: without limits the worst of 35 cases missed by 60 %, not 26 %.
_LEAST_SLOPE, _MOST_SLOPE = 0.9, 1.3


def predict(
    model: Any,
    plan: FitPlan,
    batch_size: int,
    *,
    quick: Quick | None = None,
    limit_bytes: int | None = None,
) -> int | None:
    """Predicted peak bytes of a batch size; None if fewer than two trials finished.

    Runs one child for each smaller batch, smallest first, until one does not finish.

    Args:
        model: A compiled model of Keras 3.
        plan: The fit.
        batch_size: The batch size to predict for.
        quick: Estimates the bytes for a batch size, from the model alone.
        limit_bytes: Memory limit of each child.
    """
    trials: list[Trial] = []
    for size in smaller_batches(batch_size):
        trials.append(trial(model, plan, size, limit_bytes=limit_bytes))
        if not trials[-1].finished:
            break
    measured = measured_bytes(trials)
    in_trial = quick_of_trial(quick, plan)
    return extrapolate(measured, batch_size, in_trial) if len(measured) > 1 else None


def quick_of_trial(quick: Quick | None, plan: FitPlan) -> Quick | None:
    """The quick estimate for trials instead of fits: without the copies that they lack."""
    return quick and (lambda size: quick(size) - uncopied_in_trial(plan, size))


def smaller_batches(batch_size: int) -> tuple[int, ...]:
    """The batch sizes to run: 2, an eighth, a quarter and a half, each once and in order."""
    sizes = {2, batch_size // 8, batch_size // 4, batch_size // 2}
    return tuple(sorted(size for size in sizes if 0 < size < batch_size))


def measured_bytes(trials: list[Trial]) -> dict[int, int]:
    """Peak by batch size, of the trials that finished."""
    return {one.batch_size: one.peak_bytes for one in trials if one.finished and one.peak_bytes}


def extrapolate(measured: Mapping[int, int], batch_size: int, quick: Quick | None = None) -> int:
    """Predicted peak bytes of a batch size, on a line through the measured ones.

    The line is over the quick estimates of the batches, or over their sizes. Its slope is the median of the slopes between
    all pairs of points (Theil-Sen), where a pair counts as much as its points are apart: one step of the pool, or two
    similar batches, do not bend it.

    Args:
        measured: Peak bytes by batch size; at least two without a quick estimate.
        batch_size: The batch size to predict for.
        quick: Estimates the bytes of a trial of a batch size.
    """
    place: Quick = float if quick is None else quick
    points = sorted((place(size), peak) for size, peak in measured.items())
    slope = _slope(points)
    if quick is not None:
        slope = 1.0 if slope is None else min(max(slope, _LEAST_SLOPE), _MOST_SLOPE)
    assert slope is not None
    base = statistics.median(peak - slope * at for at, peak in points)
    return max(0, round(base + slope * place(batch_size)))


def _slope(points: Sequence[tuple[float, int]]) -> float | None:
    """The weighted median of the slopes; None if no two points are apart."""
    pairs = [
        ((high - low) / (b - a), b - a)
        for (a, low), (b, high) in itertools.combinations(points, 2)
        if b > a
    ]
    total = 0.0
    half = sum(apart for _, apart in pairs) / 2
    for slope, apart in sorted(pairs):
        total += apart
        if total >= half:
            return slope
    return None
