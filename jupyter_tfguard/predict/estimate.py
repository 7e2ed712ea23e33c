"""Estimates the memory of a fit, compares it with what is available, and says what to change.

On the CPU: host memory. On a GPU: memory in tensors on the card, always measured, because XLA compiles the step there.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..training.plan import FitPlan
from ..units import human_bytes
from .answer import Answer, Grade
from .bound.bound import Bound, bound
from .changes import changes
from .compared import last_comparison, named_batch, remember
from .own_memory import CannotEstimate, Room, runs_on_gpu, runs_on_host
from .read_batch import FitData, fit_data
from .traced.quick import Estimate, QuickPrediction
from .traced.trace import CannotTrace, first_line
from .trial.extrapolate import predict
from .trial.trial import LIMIT_FRACTION, Trial, need_here, trial

# Two runs of the same fit differ; a trial is rather too high than too low (tests/bench/RESULTS.md).
_MEASURED_RANGE = (0.85, 1.1)
_EXTRAPOLATED_RANGE = (0.8, 1.25)
# On a GPU, in 5 of 6 fits on an H100 within 9 %; the sixth needed 1.32 times as much (tests/bench/RESULTS.md).
_MEASURED_ON_GPU_RANGE = (0.9, 1.35)
# Where Keras checks that data match a model.
_CHECKS = tuple(
    f"/keras/src/{part}"
    for part in (
        "layers/input_spec",
        "models/functional",
        "losses/",
        "trainers/compile_utils",
        "backend/tensorflow/nn",
    )
)


def estimate(model: Any, arguments: Mapping[str, Any], *, measure: bool = False) -> Answer:
    """Estimate the memory of one call of ``fit``. The model is unchanged afterwards.

    Args:
        model: A compiled model of Keras 3.
        arguments: The arguments of ``fit``, by name.
        measure: Run some steps in a child process instead of tracing one; takes about half a minute. Always done on a GPU.

    Raises:
        CannotEstimate: The fit is not covered, would fail, or the batch size is not known.
    """
    check_covered(model)
    plan = FitPlan.of(arguments)
    data = fit_data(model, plan)
    if runs_on_gpu(model):
        tried = trial(model, data.plan, data.size)
        room = gpu_room(tried)
        return _answer(data, room, _measured(model, data, tried, room.available_bytes, None))
    room = Room.now()
    quick, notes = traced_fit(model, data.plan)
    traced = None if quick is None else quick.at(data.size)
    known = quick or bound(model, data.plan)
    if measure:
        limit_bytes = int(LIMIT_FRACTION * room.available_bytes)
        tried = trial(model, data.plan, data.size, limit_bytes=limit_bytes)
        need = _measured(model, data, tried, limit_bytes, quick)
    else:
        need = _computed(known, data.size, notes)
    if (earlier := last_comparison(model)) is not None:
        need.notes.append(earlier.text())
    answer = replace(
        _answer(data, room, need),
        parts=_parts(traced, need.best_bytes),
        fitting_batch_size=named_batch(model, plan, known, room.available_bytes, data.sample_count),
        changes=changes(model, plan, data.plan.place, quick, traced),
    )
    remember(model, plan, answer)
    return answer


class _Need(NamedTuple):
    """The range of an answer, and the notes about it."""

    grade: Grade
    low_bytes: int
    best_bytes: int | None
    high_bytes: int | None
    notes: list[str]


def _answer(data: FitData, room: Room, need: _Need) -> Answer:
    return Answer(
        batch_size=data.size,
        grade=need.grade,
        low_bytes=need.low_bytes,
        best_bytes=need.best_bytes,
        high_bytes=need.high_bytes,
        available_bytes=room.available_bytes,
        limit=room.limit,
        notes=tuple(need.notes),
        place=data.plan.place,
    )


def _computed(known: QuickPrediction | Bound, size: int, notes: list[str]) -> _Need:
    if isinstance(known, Bound):
        notes += [f"Not counted: {name}." for name in known.unknown]
        return _Need(Grade.BOUND, known.total_bytes, None, None, notes)
    found = known.at(size)
    if found.unknown:
        names = ", ".join(found.unknown)
        notes.append(f"Some sizes inside {names} are guesses, so the range is wider.")
    return _Need(Grade.QUICK, found.low_bytes, found.best_bytes, found.high_bytes, notes)


def _measured(
    model: Any, data: FitData, found: Trial, limit_bytes: int, quick: QuickPrediction | None
) -> _Need:
    """The need according to a trial, and to smaller ones if it reached the limit.

    Raises:
        CannotEstimate: The trial ended for another reason than its memory.
    """
    plan, size = data.plan, data.size
    notes = [] if found.source is None else [f"Data of the trial: {found.source.value}."]
    if found.finished and found.peak_bytes is not None:
        best = need_here(found.peak_bytes, plan, size)
        factors = _MEASURED_RANGE if found.gpu_limit_bytes is None else _MEASURED_ON_GPU_RANGE
        low, high = (int(best * factor) for factor in factors)
        return _Need(Grade.MEASURED, low, best, high, notes)
    if not found.is_too_large:
        raise CannotEstimate(f"The trial with batch_size={size} {found.ending_text()}.")
    notes.append(f"A trial with batch_size={size} was ended at {human_bytes(limit_bytes)}.")
    at = None if quick is None else quick.best_bytes
    smaller = predict(model, plan, size, quick=at, limit_bytes=limit_bytes)
    least = need_here(found.peak_bytes or 0, plan, size)
    if smaller is not None:
        best = max(least, need_here(smaller, plan, size))
        low, high = (int(best * factor) for factor in _EXTRAPOLATED_RANGE)
        return _Need(Grade.EXTRAPOLATED, max(least, low), best, high, notes)
    if quick is None:
        return _Need(Grade.BOUND, least, None, None, notes)
    computed = _computed(quick, size, [])
    return computed._replace(low_bytes=max(least, computed.low_bytes), notes=notes)


def gpu_room(found: Trial) -> Room:
    """What this process can still allocate on its first GPU, as the child of this trial saw it.

    Raises:
        CannotEstimate: The child did not come so far.
    """
    if found.gpu_limit_bytes is None:
        raise CannotEstimate(
            f"The trial with batch_size={found.batch_size} {found.ending_text()}. How much memory the GPU has left "
            "is unknown."
        )
    return Room.on_gpu(found.gpu_limit_bytes)


def traced_fit(model: Any, plan: FitPlan) -> tuple[QuickPrediction | None, list[str]]:
    """The traced step; without one, the reason as a note.

    Raises:
        CannotEstimate: The fit itself would fail.
    """
    try:
        return QuickPrediction(model, plan), []
    except CannotTrace as reason:
        if (failure := _failure_of_fit(reason.__cause__)) is not None:
            raise CannotEstimate(f"fit() would fail with these data: {failure}") from reason
        return None, [f"The training step could not be traced: {reason}."]


def _failure_of_fit(error: BaseException | None) -> str | None:
    """The error that ``fit`` will raise too, because model and data do not match; None for any other error."""
    if not isinstance(error, ValueError) or error.__traceback__ is None:
        return None
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    path = Path(frame.f_code.co_filename).as_posix()
    first = first_line(error)
    is_check = any(part in path for part in _CHECKS) or "Dimensions must be equal" in first
    return first if is_check else None


def check_covered(model: Any) -> None:
    """Check that a model trains with TensorFlow on the CPU or one GPU of this process.

    Raises:
        CannotEstimate: It does not; the text says why.
    """
    if (reason := _uncovered(model)) is not None:
        raise CannotEstimate(reason)


def _uncovered(model: Any) -> str | None:
    if isinstance(model, type):
        return f"{model.__name__} is a class: estimate the fit of a model, {model.__name__}(...)."
    bases = [base.__module__.partition(".")[0] for base in type(model).__mro__]
    keras = sys.modules.get("keras")
    version = str(getattr(keras, "__version__", ""))
    if "tf_keras" in bases or ("keras" in bases and not version.startswith("3")):
        return (
            "This model is of Keras 2 (tf_keras, or Keras before 3.0). Estimates cover Keras 3 only; "
            "a fit of Keras 2 is still refused if it certainly cannot fit."
        )
    if keras is None or not isinstance(model, keras.Model):
        return f"Estimates cover models of Keras 3, and this is none: {type(model).__name__}."
    if keras.backend.backend() != "tensorflow":
        return f"Estimates cover Keras with TensorFlow; here it runs on {keras.backend.backend()}."
    if getattr(model, "optimizer", None) is None:
        return "The model is not compiled: call model.compile() first."
    if runs_on_host(model) or runs_on_gpu(model):
        return None
    strategy = getattr(model, "_distribute_strategy", None)
    if strategy is None:
        return "Estimates cover fits on the CPU or one GPU; TensorFlow has created other devices here, or none yet."
    count = getattr(strategy, "num_replicas_in_sync", None)
    devices = "several devices" if count is None else f"{count} devices"
    return (
        f"This model trains on {devices} ({type(strategy).__name__}): each holds its own weights and part of the batch. "
        "Estimates cover one device."
    )


def _parts(traced: Estimate | None, best: int | None) -> tuple[tuple[str, int], ...]:
    """Bytes by part. What is not known by name belongs to the activations."""
    if traced is None or best is None:
        return ()
    known = {
        "gradients": traced.gradients_bytes,
        "weights": traced.weights_bytes,
        "optimizer": traced.slots_bytes,
        "graph": traced.graph_bytes,
        "data": traced.data_bytes,
    }
    known["activations"] = max(0, best - sum(known.values()))
    return tuple(sorted(((k, v) for k, v in known.items() if v), key=lambda part: -part[1]))
