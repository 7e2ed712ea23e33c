"""Refuses a ``predict`` whose outputs certainly cannot fit into memory, before its first step.

Keras keeps the outputs of all batches until the end, then joins them and copies the result. Covers models whose output
shapes are declared, on the CPU; a ``predict_step`` of the model's own is not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..shield import shielded
from ..training.pipeline import INFINITE, cardinality
from ..training.plan import FitPlan, copied_bytes, item_bytes, rounded_down
from ..units import human_bytes
from .bound.graph import is_of_keras
from .own_memory import has_pool, runs_on_host, too_little

# All outputs, their joined copy, and the array made of that. The pool does not give the first back.
_COPIES_WITH_POOL = 3
_COPIES = 2
_POOL_BYTES = 256 << 10  # smaller tensors are not in the pool
_PIECE_SHARE = 0.4
_WORTH_BYTES = 64 << 20  # less is not checked: a guarded kernel has more


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that a ``predict`` keeps.

    Attributes:
        row_count: Number of rows, at least.
        row_bytes: Bytes of the outputs of one row.
        shapes: Shape of a row of each output, as text.
        copies: How often they are in memory at the peak, at least.
        input_bytes: Tensors into which Keras copies the arrays.
    """

    row_count: int
    row_bytes: int
    shapes: str
    copies: int
    input_bytes: int

    @property
    def need_bytes(self) -> int:
        """Lower bound of the additional memory at the peak."""
        return self.row_count * self.row_bytes * self.copies + self.input_bytes

    def text(self, available_bytes: int, limit_bytes: int | None) -> str:
        """The message for the user."""
        total = self.row_count * self.row_bytes
        limit = "" if limit_bytes is None else f" (limit {human_bytes(limit_bytes)})"
        piece = int(_PIECE_SHARE * max(0, available_bytes) / (_COPIES_WITH_POOL * self.row_bytes))
        rows = f"{rounded_down(piece):,} rows" if piece else "fewer rows"
        return (
            f"predict() keeps all its outputs: {self.row_count:,} rows × {self.shapes} = {human_bytes(total)}, at its peak "
            f"about three times as much; {human_bytes(available_bytes)} are available{limit}. "
            f"Predict in pieces of {rows} and write each to a file. To run it anyway, enter %tfguard pause first."
        )


def check_predict(
    model: Any,
    plan: FitPlan,
    available_bytes: Callable[[], int],
    limit_bytes: int | None = None,
) -> str | None:
    """The message if a ``predict`` will certainly run out of memory; None if it may fit or that is unknown.

    Args:
        model: A model of Keras 3 or Keras 2.
        plan: The run.
        available_bytes: Reads how much memory this process can still use.
        limit_bytes: The limit to name in the text.
    """
    with shielded("outputs of a predict"):
        found = outputs_of(model, plan)
        # Most calls are small: everything below takes longer than they do.
        if found is None or found.need_bytes < _WORTH_BYTES:
            return None
        if found.need_bytes <= available_bytes() or not runs_on_host(model):
            return None
        available = too_little(found.need_bytes, available_bytes)
        return None if available is None else found.text(available, limit_bytes)
    return None


def outputs_of(model: Any, plan: FitPlan) -> Outputs | None:
    """The outputs of a ``predict``; None if their number or size is unknown."""
    rows = _row_count(plan)
    tensors = getattr(model, "outputs", None)
    kind = type(model)
    # A callback can end a predict early.
    if not rows or not tensors or not plan.batch_size or plan.callbacks:
        return None
    if not all(is_of_keras(getattr(kind, name, None)) for name in ("predict_step", "predict")):
        return None
    shapes = [tuple(one.shape)[1:] for one in tensors]
    if any(size is None for shape in shapes for size in shape):
        return None
    sizes = [
        math.prod(shape) * item_bytes(one.dtype) for shape, one in zip(shapes, tensors, strict=True)
    ]
    least = min(plan.batch_size, rows) * min(sizes)
    is_pooled = least >= _POOL_BYTES and rows > plan.batch_size and has_pool()
    texts = [
        f"{'×'.join(map(str, shape)) or '1'} {getattr(one.dtype, 'name', one.dtype)}"
        for shape, one in zip(shapes, tensors, strict=True)
    ]
    return Outputs(
        row_count=rows,
        row_bytes=sum(sizes),
        shapes=texts[0] if len(texts) == 1 else f"({', '.join(texts)})",
        copies=_COPIES_WITH_POOL if is_pooled else _COPIES,
        input_bytes=copied_bytes(plan.x)[0],
    )


def _row_count(plan: FitPlan) -> int | None:
    """Number of rows, never an overestimate; None if unknown."""
    most = None if not plan.steps or not plan.batch_size else plan.steps * plan.batch_size
    if not plan.is_pipeline:
        rows = plan.sample_count if plan.first_batch else None
        return rows if rows is None or most is None else min(rows, most)
    batches, size = cardinality(plan.x), plan.first_batch
    if size is None:
        return None
    if batches > 0:
        rows = max(size, (batches - 1) * size)
        return rows if most is None else min(rows, most)
    return most if batches == INFINITE else None
