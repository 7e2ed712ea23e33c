"""Finds the largest batch size whose ``fit`` fits into the available memory: predicts it, then tries it.

Batch sizes have at most two leading binary digits: 1, 2, 3, 4, 6, 8, 12, 16. A trial needs memory for a second copy of
TensorFlow, the weights and the data, within the same available memory. So close to the limit the batch found can be one
step smaller than the largest that the kernel itself could run.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..units import human_bytes
from .batches import batch_size, rounded_down, sample_count, uncopied_bytes
from .bound import flat_layers, slots_per_weight
from .extrapolate import Quick, extrapolate, measured_bytes
from .graph import is_of_keras
from .sizes import leaves
from .trial import LIMIT_FRACTION, STEP_COUNT, Trial, trial

_RESERVE_FRACTION = 0.05
_TRIALS_LIMIT = 8
_START_BATCH = 32
# A prediction for a much larger batch than any tried one is not worth a trial.
_STEP_UP = 4

# Trials that finished, by model structure, data shapes and batch size. They hold for this machine and process.
_finished: dict[tuple[Any, ...], Trial] = {}


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """The result of a search.

    Attributes:
        batch_size: The largest batch size whose trial fitted; None if none did.
        peak_bytes: Measured peak of that trial; None without one.
        trials: All trials, in the order in which they were made. If the last one ended for another reason than memory,
            the search stopped there.
        available_bytes: What was available.
    """

    batch_size: int | None
    peak_bytes: int | None
    trials: tuple[Trial, ...]
    available_bytes: int

    def text(self) -> str:
        """The result for the user."""
        lines = [
            "No batch size fits."
            if self.batch_size is None
            else f"batch_size={self.batch_size} is the largest that fits: it needed {human_bytes(self.peak_bytes)} "
            f"of {human_bytes(self.available_bytes)} available."
        ]
        lines += [f"  {_line(one)}" for one in self.trials]
        return "\n".join(lines)

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
    sizes = _Sizes(fit_arguments)
    budget = int(available_bytes * (1 - _RESERVE_FRACTION))
    trials: list[Trial] = []
    best: Trial | None = None
    too_large = sizes.largest + 1
    size: int | None = sizes.start
    while size is not None and len(trials) < _TRIALS_LIMIT:
        found = _try(model, fit_arguments, size, int(LIMIT_FRACTION * available_bytes))
        trials.append(found)
        need = (found.peak_bytes or 0) + sizes.copies_bytes(size)
        if found.finished and need <= budget:
            best = found
        elif found.finished or found.is_too_large:
            too_large = size
        else:
            break
        size = sizes.next(measured_bytes(trials), best, too_large, budget, quick)
    if best is None:
        return BatchChoice(None, None, tuple(trials), available_bytes)
    return BatchChoice(best.batch_size, best.peak_bytes, tuple(trials), available_bytes)


class _Sizes:
    """The batch sizes that a search considers.

    Attributes:
        start: The first one to try.
        largest: The number of samples; unlimited for a dataset.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.largest = sample_count(arguments) or sys.maxsize
        asked = min(batch_size(arguments) or _START_BATCH, self.largest)
        self.start = rounded_down(max(1, asked // 8))
        self._arguments = arguments

    def copies_bytes(self, size: int) -> int:
        """Bytes of Keras' copies of whole arrays that a trial does not have: it uses fewer samples."""
        return uncopied_bytes(self._arguments, size * STEP_COUNT)

    def next(
        self,
        measured: Mapping[int, int],
        best: Trial | None,
        too_large: int,
        budget: int,
        quick: Quick | None,
    ) -> int | None:
        """The largest size that may fit according to the trials so far; None if the search is over."""
        if best is None:
            return rounded_down(too_large // _STEP_UP) if too_large > 1 else None
        highest = min(too_large - 1, best.batch_size * _STEP_UP)
        for size in _descending(highest, best.batch_size):
            if len(measured) < 2 and quick is None:
                return size
            if extrapolate(measured, size, quick) + self.copies_bytes(size) <= budget:
                return size
        return None


def _descending(highest: int, above: int) -> Iterator[int]:
    """The considered sizes from `highest` down to the one above `above`."""
    while (size := rounded_down(highest)) > above:
        yield size
        highest = size - 1


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
