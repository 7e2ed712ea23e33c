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
from ..training.pipeline_batch import cardinality
from ..training.plan import FitPlan, fit_plan, leaves, length_of, whole
from .room import CannotEstimate
from .trace import first_line

_NAMES = ("x", "y", "sample_weight")
_READ = (METHOD, LOADER)


class FitData(NamedTuple):
    """The data of a fit with a known batch size.

    Attributes:
        arguments: The arguments of ``fit``, by name; arrays of one batch take the place of data that declare no shapes.
        plan: The plan of the fit.
        size: Samples in a batch.
    """

    arguments: Mapping[str, Any]
    plan: FitPlan
    size: int


def fit_data(model: Any, arguments: Mapping[str, Any]) -> FitData:
    """The data of a fit, with the shapes of a batch.

    Args:
        model: The model, which may have a preprocessor.
        arguments: The arguments of ``fit``, by name.

    Raises:
        CannotEstimate: The data are empty, or their batches have no known size.
    """
    plan = fit_plan(arguments)
    _check_samples(arguments, plan)
    is_raw = getattr(model, "preprocessor", None) is not None
    if hasattr(arguments.get("x"), "element_spec") and not is_raw:
        _check_batched(model, arguments["x"])
    if plan.place.kind in _READ:
        arguments, plan = _read(arguments, plan)
    if is_raw:
        return _preprocessed(model, arguments, plan)
    size = plan.first_batch or plan.batch_size or arguments.get("batch_size")
    if not size:
        raise CannotEstimate(_unknown_text(arguments, plan))
    return FitData(arguments, plan, int(size))


def _check_samples(arguments: Mapping[str, Any], plan: FitPlan) -> None:
    x: Any = arguments.get("x")
    if x is None or (isinstance(x, (Mapping, list, tuple)) and not len(x)):
        raise CannotEstimate("This fit has no data: pass what fit() is to train on.")
    is_empty = plan.sample_count == 0
    if hasattr(x, "element_spec"):
        is_empty = is_empty or cardinality(x) == 0
    if is_empty:
        raise CannotEstimate("The data are empty: fit() would have nothing to train on.")
    counts = {name: length_of(next(leaves(arguments.get(name)), None)) for name in _NAMES}
    known = {name: count for name, count in counts.items() if count is not None}
    if len(set(known.values())) > 1:
        rows = ", ".join(f"{name} has {count:,}" for name, count in known.items())
        raise CannotEstimate(f"fit() would fail with these data: {rows} samples.")
    given = whole(arguments.get("batch_size"))
    if given is not None and given < 0:
        raise CannotEstimate(f"fit() would fail: batch_size={given} is negative.")


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


def _read(arguments: Mapping[str, Any], plan: FitPlan) -> tuple[Mapping[str, Any], FitPlan]:
    """The arguments with the arrays of one batch.

    Raises:
        CannotEstimate: The user's code raised an error, or made no batch.
    """
    data = arguments["x"]
    reading = f"{plan.place.name}.__getitem__"
    if plan.place.kind == LOADER:
        reading = f"The dataset of {plan.place.name}"
    try:
        if plan.place.kind == LOADER:
            batch = data.dataset[0]
            if plan.batch_size is not None:  # else its dataset delivers batches
                batch = data.collate_fn([batch])
        else:
            if hasattr(type(data), "__len__") and not len(data):
                raise CannotEstimate("The data are empty: fit() would have nothing to train on.")
            batch = data[0]
    except CannotEstimate:
        raise
    except Exception as error:  # the user's code runs here
        raise CannotEstimate(
            f"{reading} raised {type(error).__name__}: {first_line(error)}"
        ) from error
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    found = next(leaves(parts), None)
    shape = getattr(found, "shape", None)
    if shape is None or not len(shape):
        raise CannotEstimate(f"{reading} returns no arrays, so the shapes of a batch are unknown.")
    if plan.place.kind == METHOD or plan.batch_size is None:
        count = None
        if hasattr(type(data), "__len__"):
            count = len(data) * int(shape[0])
        plan = replace(plan, batch_size=int(shape[0]), first_batch=None, sample_count=count)
    return _but_data(arguments) | dict(zip(_NAMES, parts, strict=False)), plan


def _preprocessed(model: Any, arguments: Mapping[str, Any], plan: FitPlan) -> FitData:
    """The data as the model's own preprocessor makes them of the first samples.

    Raises:
        CannotEstimate: The preprocessor raised an error, or the batch size is unknown.
    """
    given = [arguments.get(name) for name in _NAMES]
    size = plan.first_batch or plan.batch_size
    if isinstance(given[0], list) and size is None:  # a list of texts
        plan = fit_plan({"x": sys.modules["numpy"].empty(len(given[0]))} | _but_data(arguments))
        size = plan.first_batch
    if size is None:
        raise CannotEstimate(_unknown_text(arguments, plan))
    if hasattr(given[0], "element_spec"):
        return FitData({**arguments, "x": _mapped(model, given[0])}, plan, size)
    first = [None if one is None else _first_rows(one, min(size, 2)) for one in given]
    names = inspect.signature(model.preprocessor.call).parameters
    extra = {
        name: value for name, value in zip(_NAMES[1:], first[1:], strict=True) if name in names
    }
    try:
        made = model.preprocessor(first[0], **extra)
    except Exception as error:  # the user's code runs here
        raise CannotEstimate(
            f"The preprocessor of the model raised {type(error).__name__}: {first_line(error)}"
        ) from error
    parts = made if isinstance(made, tuple) else (made,)
    made = _but_data(arguments) | dict(zip(_NAMES, parts, strict=False))
    return FitData(made | {"batch_size": size}, plan, size)


def _but_data(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _NAMES}


def _mapped(model: Any, dataset: Any) -> Any:
    """The pipeline with the preprocessor at its end, as the fit makes it. Nothing is read.

    Raises:
        CannotEstimate: The preprocessor raised an error.
    """
    function = getattr(model, "preprocess_samples", None) or model.preprocessor
    try:
        return dataset.map(function)
    except Exception as error:  # the user's code runs here
        raise CannotEstimate(
            f"The preprocessor of the model raised {type(error).__name__}: {first_line(error)}"
        ) from error


def _first_rows(value: Any, count: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _first_rows(one, count) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_first_rows(one, count) for one in value)
    return sys.modules["tensorflow"].convert_to_tensor(
        value[:count]
    )  # a list of texts, or an array


def _unknown_text(arguments: Mapping[str, Any], plan: FitPlan) -> str:
    if hasattr(arguments.get("x"), "element_spec"):
        return (
            "Only code that runs in the pipeline decides how many samples its batches have. Declare it in the "
            "output_signature, such as tf.TensorSpec((32, ...)), or pass batch_size=... to the estimate; fit() itself ignores it."
        )
    if plan.place.kind == GENERATOR:
        return (
            "The batches of a generator cannot be read without using them up. Estimate with one batch of it: "
            "x, y = next(generator), then model.fit(x, y, batch_size=len(x))."
        )
    return f"fit() cannot train on data of this type: {type(arguments.get('x')).__name__}."
