"""Refuses a ``fit`` that cannot fit into memory before its first step; says by how much, and which batch fits.

Only if it is certain that memory will run out: on the CPU, with TensorFlow as the Keras backend, in one process. Any
other fit starts as it would without the guard.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..shield import shielded
from ..training.plan import FitPlan
from ..units import human_bytes
from .bound.bound import Bound, bound
from .compared import named_batch
from .own_memory import Room, runs_on_host, too_little
from .traced.quick import QuickPrediction
from .traced.trace import CannotTrace

# The traced step of a refused fit itself takes memory and time.
_TRACE_BYTES = 256 << 20
_CALLS_LIMIT = 300


# A refusal needs no safety factor: the bound adds up what must be in memory at the same time. In
# tests/bench/bound.py it was at most 0.84 of the memory that the fit actually used; with one thread, without
# oneDNN or with TensorFlow 2.15 at most 0.89.
@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a fit cannot run.

    Attributes:
        bound: The memory it needs, by part.
        available_bytes: The memory it can get, including free memory that the process already holds.
        limit_bytes: The binding limit; None if unknown.
        plan: The fit.
    """

    bound: Bound
    available_bytes: int
    limit_bytes: int | None
    plan: FitPlan

    @property
    def need_bytes(self) -> int:
        """Lower bound of the additional memory needed."""
        return self.bound.total_bytes

    def text(self, fitting_batch_size: int | None = None) -> str:
        """The message for the user: numbers, the largest parts, what to change, and how to run it anyway.

        Args:
            fitting_batch_size: A batch that should fit; None if there is none or it is unknown.
        """
        size = self.bound.batch_size
        call = "fit()" if size is None else f"fit() with {self.plan.place.stated(size)}"
        limit = "" if self.limit_bytes is None else f" (limit {human_bytes(self.limit_bytes)})"
        parts = sorted(self.bound.parts().items(), key=lambda part: -part[1])
        most = ", ".join(f"{name} {human_bytes(number)}" for name, number in parts[:3] if number)
        sentences = [
            f"{call} needs at least {human_bytes(self.need_bytes)} more memory; "
            f"{human_bytes(self.available_bytes)} are available{limit}.",
            f"Estimate by part: {most}.",
            *self._advice(fitting_batch_size),
            "To run it anyway, enter %tfguard pause first.",
        ]
        return " ".join(sentences)

    def _advice(self, fitting_batch_size: int | None) -> list[str]:
        found = []
        if fitting_batch_size is not None:
            change = self.plan.place.change("fit", fitting_batch_size)
            found.append(f"With {change} it should fit.")
        elif self.bound.batch_bytes > self.bound.fixed_bytes:
            found.append(f"Use {self.plan.place.change('fit')}, or a smaller model.")
        if self.bound.copies_bytes > self.need_bytes / 3:
            found.append(
                "Keras copies whole arrays: read the data in batches with tf.data or a PyDataset."
            )
        if self.bound.slots_bytes + self.bound.gradients_bytes > self.need_bytes / 2:
            found.append("The model has too many weights: make its largest layers smaller.")
        return found


def check_fit(
    model: Any,
    plan: FitPlan,
    available_bytes: Callable[[], int],
    limit_bytes: int | None = None,
) -> Refusal | None:
    """Check whether a fit will certainly run out of memory. Takes a few ms; errors of the guard are not raised.

    Args:
        model: A compiled model of Keras 3 or Keras 2.
        plan: The fit.
        available_bytes: Reads how much memory this process can still use, including free swap.
        limit_bytes: The limit to name in the text.

    Returns:
        The refusal; None if the fit may fit, or if that is unknown.
    """
    with shielded("bound before fit"):
        if not runs_on_host(model) or getattr(model, "optimizer", None) is None:
            return None
        found = bound(model, plan)
        available = too_little(found.total_bytes, available_bytes)
        return None if available is None else Refusal(found, available, limit_bytes, plan)
    return None


def refusal_text(refused: Refusal, model: Any) -> str:
    """The message of a refused fit, with the batch size that its estimate names."""
    known, size = refused.bound, None
    with shielded("batch that fits instead of a refused one"):
        step: Bound | QuickPrediction = known
        available = Room.now().available_bytes
        if available >= _TRACE_BYTES and known.batch_size and known.call_count <= _CALLS_LIMIT:
            with contextlib.suppress(CannotTrace):
                step = QuickPrediction(model, refused.plan)
        count = refused.plan.sample_count
        found = named_batch(model, refused.plan, step, available, count)
        if found is not None and known.batch_size and found < known.batch_size:
            size = found
    return refused.text(size)
