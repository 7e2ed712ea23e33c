"""Estimates the memory of a fit, compares it with what is available, and says what to change.

On the CPU: host memory. On a GPU: memory in tensors on the card, always measured, because XLA compiles the step there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..collectors.available import AvailableMemory
from ..collectors.memory_group import machine_bytes, memory_groups
from ..errors import SourceUnavailable, TfGuardError
from ..levels import Levels
from ..limits import CONTAINER_LIMIT, GPU_MEMORY, MACHINE_MEMORY, Limit
from ..units import human_bytes
from .answer import Answer, Change, Grade
from .batch_search import BatchChoice, Show, largest_batch
from .batches import LARGEST_BATCH, batch_size, sample_count
from .bound import bound, flat_layers, slots_per_weight
from .compared import last_comparison, remember
from .data_changes import data_changes
from .extrapolate import Quick, predict
from .quick import Estimate, QuickPrediction
from .refusal import Refusal, runs_on_gpu, runs_on_host
from .reusable import gpu_pool_bytes
from .sizes import variable_bytes
from .trace import CannotTrace
from .trial import LIMIT_FRACTION, Trial, need_here, trial
from .trial_process import TrialProcess

# Two runs of the same fit differ; a trial is rather too high than too low (tests/benchmarks/RESULTS.md).
_MEASURED_RANGE = (0.85, 1.1)
_EXTRAPOLATED_RANGE = (0.8, 1.25)
# On a GPU, in 5 of 6 fits on an H100 within 9 %; the sixth needed 1.32 times as much (tests/benchmarks/RESULTS.md).
_MEASURED_ON_GPU_RANGE = (0.9, 1.35)
_ACCUMULATED = 4  # batches, in the advice to accumulate gradients
_WORTH_FRACTION = 0.1  # of the need; a smaller saving is not worth a sentence


class CannotEstimate(TfGuardError):
    """The memory of this fit cannot be estimated; the text says why and what to do."""


class Room(NamedTuple):
    """Memory that a cell can still use before the guard stops it, and the limit that binds."""

    available_bytes: int
    limit: Limit

    @classmethod
    def now(cls) -> Room:
        """Read the current values.

        Raises:
            CannotEstimate: This system has no memory figures.
        """
        try:
            groups = memory_groups(os.getpid())
        except SourceUnavailable:
            groups = ()
        try:
            memory = AvailableMemory(groups)
            available, total = memory.read(), memory.total_bytes()
            memory.close()
            name = CONTAINER_LIMIT if total < machine_bytes() else MACHINE_MEMORY
        except SourceUnavailable as absent:
            raise CannotEstimate(f"The available memory is unknown. {absent}") from absent
        if available is None:
            raise CannotEstimate(
                "The available memory is unknown: /proc/meminfo has no MemAvailable."
            )
        return cls(max(0, available - Levels.of(total).stop_cap_bytes), Limit(total, name))

    @classmethod
    def on_gpu(cls, found: Trial) -> Room:
        """What this process can still allocate on its first GPU, as the child of this trial saw it.

        Raises:
            CannotEstimate: The child did not come so far.
        """
        if found.gpu_limit_bytes is None:
            raise CannotEstimate(
                f"The trial with batch_size={found.batch_size} {found.ending_text()}. How much memory the GPU has left "
                "is unknown."
            )
        total = found.gpu_limit_bytes + gpu_pool_bytes()
        return cls(found.gpu_limit_bytes, Limit(total, GPU_MEMORY))


def estimate(model: Any, arguments: Mapping[str, Any], *, measure: bool = False) -> Answer:
    """Estimate the memory of one call of ``fit``. The model is unchanged afterwards.

    Args:
        model: A built and compiled model of Keras 3.
        arguments: The arguments of ``fit``, by name.
        measure: Run some steps in a child process instead of tracing one; takes about half a minute. Always done on a GPU.

    Raises:
        CannotEstimate: The model trains on several devices or in several processes, or the batch size is not known.
    """
    size = _checked_size(model, arguments)
    if runs_on_gpu(model):
        return _on_gpu(model, arguments, size)
    room = Room.now()
    quick, notes = _quick(model, arguments)
    traced = None if quick is None else quick.at(size)
    changes = list(data_changes(arguments))
    fitting = None
    if quick is not None and traced is not None:
        changes += _model_changes(model, quick, traced)
        fitting = quick.largest_batch(
            room.available_bytes, sample_count(arguments) or LARGEST_BATCH
        )
        if traced.unknown:
            names = ", ".join(traced.unknown)
            notes.append(f"Some sizes inside {names} are guesses, so the range is wider.")
    grade, (low, best, high) = Grade.QUICK, _range_of(traced)
    if measure:
        limit_bytes = int(LIMIT_FRACTION * room.available_bytes)
        tried = trial(model, arguments, size, limit_bytes=limit_bytes)
        found = _measured(model, arguments, tried, limit_bytes, quick)
        grade, (low, best, high) = found.grade, found.range
        notes = found.notes
    elif traced is None:
        known = bound(model, arguments)
        grade, low = Grade.BOUND, known.total_bytes
        fitting = Refusal(known, room.available_bytes, None).fitting_batch_size
        notes += [f"Not counted: {name}." for name in known.unknown]
    changes.sort(key=lambda change: -change.saved_bytes)
    if (earlier := last_comparison(model)) is not None:
        notes.append(earlier.text())
    answer = Answer(
        batch_size=size,
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
    )
    remember(model, answer)
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
        CannotEstimate: The model trains on several devices or in several processes.
    """
    _check_place(model)
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
        return largest_batch(model, arguments, available, quick=quick, process=process, show=show)


def largest_batch_size(
    model: Any, arguments: Mapping[str, Any], *, show: Show | None = None
) -> int:
    """The batch size that :func:`find_batch_size` chooses, for arrays. Prints it.

    Raises:
        CannotEstimate: No batch size fits or can be tried.
    """
    if hasattr(arguments.get("x"), "element_spec"):
        raise CannotEstimate(
            "A dataset sets the batch size itself. find_batch_size() names the largest that fits: use it in .batch()."
        )
    found = find_batch_size(model, arguments, show=show)
    if found.batch_size is None:
        raise CannotEstimate(found.text())
    print(found.headline())
    return found.batch_size


def _checked_size(model: Any, arguments: Mapping[str, Any]) -> int:
    _check_place(model)
    size = batch_size(arguments) or arguments.get("batch_size")
    if not size:
        raise CannotEstimate("The batch size of these data is not known: pass batch_size=....")
    return int(size)


def _check_place(model: Any) -> None:
    if getattr(model, "optimizer", None) is None:
        raise CannotEstimate("The model is not compiled: call model.compile() first.")
    if not runs_on_host(model) and not runs_on_gpu(model):
        raise CannotEstimate(
            "Estimates cover models of TensorFlow that train on the CPU or one GPU of this process. "
            "This one trains on several devices, in several processes, or with another backend of Keras."
        )


def _on_gpu(model: Any, arguments: Mapping[str, Any], size: int) -> Answer:
    """The answer for a fit on the first GPU.

    Raises:
        CannotEstimate: The trial ended for another reason than its memory.
    """
    tried = trial(model, arguments, size)
    room = Room.on_gpu(tried)
    found = _measured(model, arguments, tried, room.available_bytes, None)
    return Answer(
        batch_size=size,
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
    )


def _quick(model: Any, arguments: Mapping[str, Any]) -> tuple[QuickPrediction | None, list[str]]:
    try:
        return QuickPrediction(model, arguments), []
    except CannotTrace as reason:
        return None, [f"The training step could not be traced: {reason}."]


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
        "optimizer": traced.slots_bytes,
        "graph": traced.graph_bytes,
        "data": traced.data_bytes,
    }
    known["activations"] = max(0, best - sum(known.values()))
    return tuple(sorted(((k, v) for k, v in known.items() if v), key=lambda part: -part[1]))


def _model_changes(model: Any, quick: QuickPrediction, now: Estimate) -> Iterator[Change]:
    """What to change in model and optimizer."""
    worth = _WORTH_FRACTION * now.best_bytes
    part = now.batch_size // _ACCUMULATED
    inner = getattr(model.optimizer, "inner_optimizer", None) or model.optimizer
    if part and not getattr(inner, "gradient_accumulation_steps", None):
        saved = now.best_bytes - quick.at(part).best_bytes - now.gradients_bytes
        if saved >= worth:
            yield Change(
                f"batch_size={part} with gradient_accumulation_steps={_ACCUMULATED} in the optimizer makes the same "
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
