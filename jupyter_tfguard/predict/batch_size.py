"""The largest batch size that fits, found by trials in child processes, and the text of the result."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..batch_place import ARGUMENT, GENERATOR, LOADER, METHOD
from ..training.plan import FitPlan
from .answer import BatchChoice
from .estimate import check_covered, gpu_room, traced_fit
from .own_memory import CannotEstimate, Room, runs_on_gpu
from .trial.process import TrialProcess
from .trial.search import Show, largest_batch
from .trial.trial import trial


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
    plan = FitPlan.of(arguments)
    if plan.place.kind in (METHOD, LOADER, GENERATOR):
        raise CannotEstimate(
            "Batch sizes are tried with arrays or a tf.data pipeline; these data exist only while fit() runs. "
            "%tfguard estimate names a batch size that should fit."
        )
    with contextlib.closing(TrialProcess()) as process:
        process.prepare()  # imports TensorFlow while the step is traced here
        quick = None
        if runs_on_gpu(model):
            available = gpu_room(trial(model, plan, 1, process=process)).available_bytes
        else:
            if show is not None:
                show("Tracing a training step.")
            step, _ = traced_fit(model, plan)
            quick = None if step is None else step.best_bytes
            # Its memory is part of that of each trial.
            available = process.own_bytes() + Room.now().available_bytes
        found = largest_batch(model, plan, available, quick=quick, process=process, show=show)
        return replace(found, place=plan.place)


def largest_batch_size(
    model: Any, arguments: Mapping[str, Any], *, show: Show | None = None
) -> int:
    """The batch size that :func:`find_batch_size` chooses, for arrays. Prints it.

    Raises:
        CannotEstimate: No batch size fits or can be tried.
    """
    place = FitPlan.of(arguments).place
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
