"""What makes a fit smaller, with the memory that it saves: changes to its data, its model and its optimizer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ..batch_place import BatchPlace
from ..training.models import variable_bytes
from ..training.plan import FitPlan, copied_bytes, leaves
from .answer import Change
from .bound.bound import flat_layers, slots_per_weight
from .traced.quick import Estimate, QuickPrediction

_WORTH_BYTES = 64 << 20  # of data; less is not worth a sentence
_WORTH_FRACTION = 0.1  # of the need; a smaller saving in the model is not worth a sentence
_ACCUMULATED = 4  # batches, in the advice to accumulate gradients


def changes(
    model: Any,
    plan: FitPlan,
    place: BatchPlace,
    quick: QuickPrediction | None,
    now: Estimate | None,
) -> tuple[Change, ...]:
    """What to change, largest saving first.

    Args:
        model: The model.
        plan: The fit.
        place: Where its batch size is set.
        quick: Its traced step, if there is one.
        now: The estimate of this batch size from it.
    """
    found = list(data_changes(plan))
    if quick is not None and now is not None:
        found += _of_model(model, quick, now, place)
    return tuple(sorted(found, key=lambda change: -change.saved_bytes))


def data_changes(plan: FitPlan) -> Iterator[Change]:
    """What to change in the data of a fit."""
    for name in ("x", "y", "validation_data"):
        yield from _of_arrays(name, getattr(plan, name))
    yield from (Change(kept.text, kept.size_bytes) for kept in plan.kept_data())


def _of_arrays(name: str, value: Any) -> Iterator[Change]:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    wide = [
        array
        for array in leaves(value)
        if isinstance(array, numpy.ndarray) and array.dtype == numpy.float64
    ]
    converted = sum(array.size * 4 for array in wide)
    if converted >= _WORTH_BYTES:
        yield Change(
            f"{name} is float64: Keras converts the whole array. Create it as float32.", converted
        )
    copied, _ = copied_bytes(value)
    if copied >= _WORTH_BYTES:
        yield Change(
            f"Keras copies {name} into a tensor: read it in batches with tf.data or a PyDataset.",
            copied,
        )


def _of_model(
    model: Any, quick: QuickPrediction, now: Estimate, place: BatchPlace
) -> Iterator[Change]:
    worth = _WORTH_FRACTION * now.best_bytes
    part = now.batch_size // _ACCUMULATED
    inner = getattr(model.optimizer, "inner_optimizer", None) or model.optimizer
    if part and not getattr(inner, "gradient_accumulation_steps", None):
        saved = now.best_bytes - quick.best_bytes(part) - now.gradients_bytes
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
