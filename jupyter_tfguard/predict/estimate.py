"""Estimates the memory of a fit, compares it with what is available, and says what to change.

On the CPU: host memory. On a GPU: memory in tensors on the card, always measured, because XLA compiles the step there.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..batch_place import ARGUMENT, GENERATOR, LOADER, METHOD, BatchPlace
from ..training.plan import fit_plan
from ..units import human_bytes
from .answer import Answer, Change, Grade
from .batch_choice import BatchChoice
from .batch_search import Show, largest_batch
from .bound import bound, flat_layers, slots_per_weight
from .compared import last_comparison, remember
from .covered import check_covered
from .data_changes import data_changes
from .extrapolate import Quick, predict
from .fitting import named_batch
from .quick import Estimate, QuickPrediction
from .read_batch import FitData, fit_data
from .refusal import runs_on_gpu
from .room import CannotEstimate, Room
from .sizes import variable_bytes
from .trace import CannotTrace, first_line
from .trial import LIMIT_FRACTION, Trial, need_here, trial
from .trial_process import TrialProcess

# Two runs of the same fit differ; a trial is rather too high than too low (tests/benchmarks/RESULTS.md).
_MEASURED_RANGE = (0.85, 1.1)
_EXTRAPOLATED_RANGE = (0.8, 1.25)
# On a GPU, in 5 of 6 fits on an H100 within 9 %; the sixth needed 1.32 times as much (tests/benchmarks/RESULTS.md).
_MEASURED_ON_GPU_RANGE = (0.9, 1.35)
_ACCUMULATED = 4  # batches, in the advice to accumulate gradients
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
_WORTH_FRACTION = 0.1  # of the need; a smaller saving is not worth a sentence


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
    data = fit_data(model, arguments)
    if runs_on_gpu(model):
        return _on_gpu(model, data)
    room = Room.now()
    quick, notes = _quick(model, data.arguments)
    traced = None if quick is None else quick.at(data.size)
    changes = list(data_changes(arguments))
    if quick is not None and traced is not None:
        changes += _model_changes(model, quick, traced, data.plan.place)
        if traced.unknown:
            names = ", ".join(traced.unknown)
            notes.append(f"Some sizes inside {names} are guesses, so the range is wider.")
    known = bound(model, data.arguments)
    grade, (low, best, high) = Grade.QUICK, _range_of(traced)
    if measure:
        limit_bytes = int(LIMIT_FRACTION * room.available_bytes)
        tried = trial(model, data.arguments, data.size, limit_bytes=limit_bytes)
        found = _measured(model, data.arguments, tried, limit_bytes, quick)
        grade, (low, best, high) = found.grade, found.range
        notes = found.notes
    elif traced is None:
        grade, low = Grade.BOUND, known.total_bytes
        notes += [f"Not counted: {name}." for name in known.unknown]
    fitting = named_batch(
        model, arguments, known, room.available_bytes, quick, data.plan.sample_count
    )
    changes.sort(key=lambda change: -change.saved_bytes)
    if (earlier := last_comparison(model)) is not None:
        notes.append(earlier.text())
    answer = Answer(
        batch_size=data.size,
        grade=grade,
        low_bytes=low,
        best_bytes=best,
        high_bytes=high,
        parts=_parts(traced, best),
        available_bytes=room.available_bytes,
        limit=room.limit,
        fitting_batch_size=fitting,
        changes=tuple(changes),
        notes=tuple(notes),
        place=data.plan.place,
    )
    remember(model, arguments, answer)
    return answer


def find_batch_size(
    model: Any, arguments: Mapping[str, Any], *, show: Show | None = None
) -> BatchChoice:
    """Search the largest batch size that fits into the available memory, by trials in child processes.

    Args:
        model: A built and compiled model of Keras 3.
        arguments: The arguments of ``fit``, by name.
        show: Called with a line about what is being tried.

    Raises:
        CannotEstimate: The fit is not covered, or its data cannot be sent to a child.
    """
    check_covered(model)
    place = fit_plan(arguments).place
    if place.kind in (METHOD, LOADER, GENERATOR):
        raise CannotEstimate(
            "Batch sizes are tried with arrays or a tf.data pipeline; these data exist only while fit() runs. "
            "%tfguard estimate names a batch size that should fit."
        )
    with TrialProcess() as process:
        process.prepare()  # imports TensorFlow while the step is traced here
        if runs_on_gpu(model):
            available, quick = (
                Room.on_gpu(trial(model, arguments, 1, process=process)).available_bytes,
                None,
            )
        else:
            if show is not None:
                show("Tracing a training step.")
            quick = _best_of(_quick(model, arguments)[0])
            # Its memory is part of that of each trial.
            available = process.own_bytes() + Room.now().available_bytes
        found = largest_batch(model, arguments, available, quick=quick, process=process, show=show)
        return replace(found, place=place)


def largest_batch_size(
    model: Any, arguments: Mapping[str, Any], *, show: Show | None = None
) -> int:
    """The batch size that :func:`find_batch_size` chooses, for arrays. Prints it.

    Raises:
        CannotEstimate: No batch size fits or can be tried.
    """
    place = fit_plan(arguments).place
    if place.kind != ARGUMENT:
        raise CannotEstimate(
            f"The batch size of these data is set elsewhere: use {place.change('fit')}. find_batch_size() names the "
            "largest that fits."
        )
    found = find_batch_size(model, arguments, show=show)
    if found.batch_size is None:
        raise CannotEstimate(found.text())
    print(found.headline())
    return found.batch_size


def _on_gpu(model: Any, data: FitData) -> Answer:
    """The answer for a fit on the first GPU.

    Raises:
        CannotEstimate: The trial ended for another reason than its memory.
    """
    tried = trial(model, data.arguments, data.size)
    room = Room.on_gpu(tried)
    found = _measured(model, data.arguments, tried, room.available_bytes, None)
    return Answer(
        batch_size=data.size,
        grade=found.grade,
        low_bytes=found.range[0],
        best_bytes=found.range[1],
        high_bytes=found.range[2],
        parts=(),
        available_bytes=room.available_bytes,
        limit=room.limit,
        fitting_batch_size=None,
        changes=(),
        notes=tuple(found.notes),
        place=data.plan.place,
    )


def _quick(model: Any, arguments: Mapping[str, Any]) -> tuple[QuickPrediction | None, list[str]]:
    try:
        return QuickPrediction(model, arguments), []
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


def _best_of(quick: QuickPrediction | None) -> Quick | None:
    return None if quick is None else lambda size: quick.at(size).best_bytes


def _range_of(traced: Estimate | None) -> tuple[int, int | None, int | None]:
    if traced is None:
        return 0, None, None
    return traced.low_bytes, traced.best_bytes, traced.high_bytes


class _Measured(NamedTuple):
    grade: Grade
    range: tuple[int, int | None, int | None]
    notes: list[str]


def _measured(
    model: Any,
    arguments: Mapping[str, Any],
    found: Trial,
    limit_bytes: int,
    quick: QuickPrediction | None,
) -> _Measured:
    """The need according to a trial, and to smaller ones if it reached the limit.

    Raises:
        CannotEstimate: The trial ended for another reason than its memory.
    """
    size = found.batch_size
    notes = [] if found.source is None else [f"Data of the trial: {found.source.value}."]
    if found.finished and found.peak_bytes is not None:
        best = need_here(found.peak_bytes, arguments, size)
        factors = _MEASURED_RANGE if found.gpu_limit_bytes is None else _MEASURED_ON_GPU_RANGE
        low, high = (int(best * factor) for factor in factors)
        return _Measured(Grade.MEASURED, (low, best, high), notes)
    if not found.is_too_large:
        raise CannotEstimate(f"The trial with batch_size={size} {found.ending_text()}.")
    notes.append(f"A trial with batch_size={size} was ended at {human_bytes(limit_bytes)}.")
    smaller = predict(model, arguments, size, quick=_best_of(quick), limit_bytes=limit_bytes)
    least = need_here(found.peak_bytes or 0, arguments, size)
    if smaller.peak_bytes is None:
        traced = _range_of(None if quick is None else quick.at(size))
        grade = Grade.BOUND if quick is None else Grade.QUICK
        return _Measured(grade, (max(least, traced[0]), *traced[1:]), notes)
    best = max(least, need_here(smaller.peak_bytes, arguments, size))
    low, high = (int(best * factor) for factor in _EXTRAPOLATED_RANGE)
    return _Measured(Grade.EXTRAPOLATED, (max(least, low), best, high), notes)


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


def _model_changes(
    model: Any, quick: QuickPrediction, now: Estimate, place: BatchPlace
) -> Iterator[Change]:
    """What to change in model and optimizer."""
    worth = _WORTH_FRACTION * now.best_bytes
    part = now.batch_size // _ACCUMULATED
    inner = getattr(model.optimizer, "inner_optimizer", None) or model.optimizer
    if part and not getattr(inner, "gradient_accumulation_steps", None):
        saved = now.best_bytes - quick.at(part).best_bytes - now.gradients_bytes
        if saved >= worth:
            yield Change(
                f"{place.change('fit', part)} with gradient_accumulation_steps={_ACCUMULATED} in the optimizer makes the same "
                "updates.",
                saved,
            )
    if now.slots_bytes >= worth:
        yield Change(
            f"{type(inner).__name__} keeps {slots_per_weight(inner)} variables per weight: SGD without momentum keeps none.",
            now.slots_bytes,
        )
    yield from _of_dense(model, now, worth)


def _of_dense(model: Any, now: Estimate, worth: float) -> Iterator[Change]:
    layers = [layer for layer in flat_layers(model) if type(layer).__name__ == "Dense"]
    if not layers:
        return
    largest = max(layers, key=lambda layer: sum(map(variable_bytes, layer.trainable_weights)))
    size = sum(map(variable_bytes, largest.trainable_weights))
    total = sum(variable_bytes(weight) for weight in model.trainable_weights)
    if total and size > total / 2:
        saved = (now.gradients_bytes + now.slots_bytes) * size // total
        if saved >= worth:
            yield Change(
                f"Layer {largest.name} has {size / total:.0%} of the weights: pool its input more "
                "(GlobalAveragePooling2D instead of Flatten), or use fewer units.",
                saved,
            )
