"""The batch size that should fit: one answer for the refusal of a fit and for its estimate."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..shield import shielded
from .batches import LARGEST_BATCH, rounded_down
from .bound import Bound
from .compared import identity
from .quick import QuickPrediction
from .refusal import Refusal
from .room import Room
from .trace import CannotTrace

# By the bound alone. It leaves room for what the bound does not count: the fits of tests/benchmarks/bound.py used up to
# 1 / 0.4 of their bound, plus TensorFlow's graph for each layer.
FITTING_SHARE = 0.4
_GRAPH_BYTES = 64 << 20
_GRAPH_BYTES_EACH = 2 << 20
# The traced step of a refused fit itself takes memory and time.
_TRACE_BYTES = 256 << 20
_CALLS_LIMIT = 300
_DIGITS = 3
_SAME_SHARE = 0.25


class _Named(NamedTuple):
    fit: tuple[Any, ...]
    available_bytes: int
    size: int | None


_named: weakref.WeakKeyDictionary[Any, _Named] = weakref.WeakKeyDictionary()


def named_batch(
    model: Any,
    arguments: Mapping[str, Any],
    known: Bound,
    available_bytes: int,
    quick: QuickPrediction | None,
    sample_count: int | None,
) -> int | None:
    """The batch to name for a fit: what was named for the same fit before, if about as much memory is available.

    The available memory changes a little from cell to cell, and with it a rounded size.
    """
    fit, before = identity(arguments), _named.get(model)
    if before is not None and before.fit == fit:
        difference = abs(available_bytes - before.available_bytes)
        if difference <= _SAME_SHARE * available_bytes:
            return before.size
    size = fitting_batch(known, available_bytes, quick, sample_count)
    _named[model] = _Named(fit, available_bytes, size)
    return size


def fitting_batch(
    known: Bound, available_bytes: int, quick: QuickPrediction | None, sample_count: int | None
) -> int | None:
    """The largest batch that should fit, a round number or all samples; None if there is none or it is unknown.

    Args:
        known: The bound of the fit.
        available_bytes: What a cell can still use.
        quick: The traced step; None if it could not be traced.
        sample_count: A batch is not larger; None if unknown.
    """
    limit = sample_count or LARGEST_BATCH
    if quick is None:
        found = _by_bound(known, available_bytes)
        return None if found is None else min(found, limit)
    most = quick.largest_batch(available_bytes, limit)
    if most is None or most == LARGEST_BATCH:
        return None
    return most if most == sample_count else rounded_down(most, _DIGITS)


def refusal_text(refused: Refusal, model: Any, arguments: Mapping[str, Any]) -> str:
    """The message of a refused fit, with the batch size that its estimate names."""
    known, size = refused.bound, None
    with shielded("batch that fits instead of a refused one"):
        quick = None
        available = Room.now().available_bytes
        if available >= _TRACE_BYTES and known.batch_size and known.call_count <= _CALLS_LIMIT:
            with contextlib.suppress(CannotTrace):
                quick = QuickPrediction(model, arguments)
        count = refused.plan.sample_count
        found = named_batch(model, arguments, known, available, quick, count)
        if found is not None and known.batch_size and found < known.batch_size:
            size = found
    return refused.text(size)


def _by_bound(known: Bound, available_bytes: int) -> int | None:
    graph = _GRAPH_BYTES + _GRAPH_BYTES_EACH * known.call_count
    found = known.largest_batch(available_bytes - graph, share=FITTING_SHARE)
    if found is None or known.batch_size is None or found >= known.batch_size:
        return None
    return rounded_down(found)
