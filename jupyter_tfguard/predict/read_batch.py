"""One batch of the data of a fit, for its shapes: read where that changes nothing, else declared as unknown.

Arrays and tf.data pipelines declare their shapes, so nothing is read. A PyDataset makes its first batch, as ``fit`` itself
does before it starts; a torch DataLoader one sample. A generator cannot be read without using it up.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..batch_place import GENERATOR, LOADER, METHOD
from ..training.pipeline import cardinality
from ..training.plan import DATA, FitPlan, leaves, length_of
from .own_memory import CannotEstimate
from .traced.trace import first_line

_EMPTY = "The data are empty: fit() would have nothing to train on."


class FitData(NamedTuple):
    """The data of a fit with a known batch size.

    Attributes:
        plan: The fit; arrays of one batch take the place of data that declare no shapes.
        size: Samples in a batch.
        sample_count: Number of samples of the user's data, at most; None if unknown.
    """

    plan: FitPlan
    size: int
    sample_count: int | None


def fit_data(model: Any, plan: FitPlan) -> FitData:
    """The data of a fit, with the shapes of a batch. The model may have a preprocessor.

    Raises:
        CannotEstimate: The data are empty, or their batches have no known size.
    """
    _check_samples(plan)
    is_raw = getattr(model, "preprocessor", None) is not None
    if plan.is_pipeline and not is_raw:
        _check_batched(model, plan.x)
    data = FitData(plan, plan.first_batch or plan.batch_size or 0, plan.sample_count)
    if plan.place.kind in (METHOD, LOADER):
        data = _read(plan)
    if is_raw:
        return _preprocessed(model, data)
    size = data.size or plan.asked_size
    if not size:
        raise CannotEstimate(_unknown_text(plan))
    return data._replace(size=size)


def _check_samples(plan: FitPlan) -> None:
    x = plan.x
    if x is None or (isinstance(x, (Mapping, list, tuple)) and not len(x)):
        raise CannotEstimate("This fit has no data: pass what fit() is to train on.")
    if plan.sample_count == 0 or (plan.is_pipeline and cardinality(x) == 0):
        raise CannotEstimate(_EMPTY)
    counts = {name: length_of(next(leaves(getattr(plan, name)), None)) for name in DATA}
    known = {name: count for name, count in counts.items() if count is not None}
    if len(set(known.values())) > 1:
        rows = ", ".join(f"{name} has {count:,}" for name, count in known.items())
        raise CannotEstimate(f"fit() would fail with these data: {rows} samples.")
    if plan.asked_size is not None and plan.asked_size < 0:
        raise CannotEstimate(f"fit() would fail: batch_size={plan.asked_size} is negative.")


def _check_batched(model: Any, dataset: Any) -> None:
    """Check that a pipeline delivers batches, if the shape that the model wants is known.

    Raises:
        CannotEstimate: It delivers single samples.
    """
    wanted = getattr(model, "input_shape", None)
    shape = getattr(next(leaves(dataset.element_spec), None), "shape", None)
    rank = getattr(shape, "rank", None)
    if rank == 0 or (isinstance(wanted, tuple) and rank is not None and rank + 1 == len(wanted)):
        raise CannotEstimate(
            "This pipeline delivers single samples, and fit() needs batches: add .batch(32) to it."
        )


def _read(plan: FitPlan) -> FitData:
    """The plan with the arrays of one batch.

    Raises:
        CannotEstimate: The user's code raised an error, or made no batch.
    """
    data, is_loader = plan.x, plan.place.kind == LOADER
    is_sized = hasattr(type(data), "__len__")
    reading = f"{plan.place.name}.__getitem__"
    if is_loader:
        reading = f"The dataset of {plan.place.name}"
    try:
        if is_loader:
            batch = data.dataset[0]
            if plan.batch_size is not None:  # else its dataset delivers batches
                batch = data.collate_fn([batch])
        else:
            if is_sized and not len(data):
                raise CannotEstimate(_EMPTY)
            batch = data[0]
    except CannotEstimate:
        raise
    except Exception as error:  # the user's code runs here
        raise CannotEstimate(
            f"{reading} raised {type(error).__name__}: {first_line(error)}"
        ) from error
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    shape = getattr(next(leaves(parts), None), "shape", None)
    if shape is None or not len(shape):
        raise CannotEstimate(f"{reading} returns no arrays, so the shapes of a batch are unknown.")
    size, count = plan.first_batch or plan.batch_size, plan.sample_count
    if not is_loader or plan.batch_size is None:
        size = int(shape[0])
        count = len(data) * size if is_sized else None
    return FitData(replace(plan.with_data(*parts), place=plan.place), size or 0, count)


def _preprocessed(model: Any, data: FitData) -> FitData:
    """The data as the model's own preprocessor makes them of the first samples.

    Raises:
        CannotEstimate: The preprocessor raised an error, or the batch size is unknown.
    """
    plan, size, count = data
    if isinstance(plan.x, list) and not size:  # a list of texts
        counted = plan.with_data(sys.modules["numpy"].empty(len(plan.x)))
        size, count = counted.first_batch or 0, counted.sample_count
    if not size:
        raise CannotEstimate(_unknown_text(plan))
    preprocess = model.preprocessor
    parts: Any = (plan.x, plan.y, plan.sample_weight)
    try:
        if plan.is_pipeline:  # at its end, as the fit makes it; nothing is read
            mapped = plan.x.map(getattr(model, "preprocess_samples", None) or preprocess)
            return FitData(plan.with_data(mapped, *parts[1:]), size, count)
        x, *others = [None if one is None else _first_rows(one, min(size, 2)) for one in parts]
        names = inspect.signature(preprocess.call).parameters
        named = zip(DATA[1:], others, strict=True)
        made = preprocess(x, **{name: value for name, value in named if name in names})
    except Exception as error:  # the user's code runs here
        raise CannotEstimate(
            f"The preprocessor of the model raised {type(error).__name__}: {first_line(error)}"
        ) from error
    made = plan.with_data(*(made if isinstance(made, tuple) else (made,)), asked_size=size)
    return FitData(replace(made, place=plan.place), size, count)


def _first_rows(value: Any, count: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _first_rows(one, count) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_first_rows(one, count) for one in value)
    return sys.modules["tensorflow"].convert_to_tensor(
        value[:count]
    )  # a list of texts, or an array


def _unknown_text(plan: FitPlan) -> str:
    if plan.is_pipeline:
        return (
            "Only code that runs in the pipeline decides how many samples its batches have. Declare it in the "
            "output_signature, such as tf.TensorSpec((32, ...)), or pass batch_size=... to the estimate; fit() itself ignores it."
        )
    if plan.place.kind == GENERATOR:
        return (
            "The batches of a generator cannot be read without using them up. Estimate with one batch of it: "
            "x, y = next(generator), then model.fit(x, y, batch_size=len(x))."
        )
    return f"fit() cannot train on data of this type: {type(plan.x).__name__}."
