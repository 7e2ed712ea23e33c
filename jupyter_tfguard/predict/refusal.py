"""Refuses a ``fit`` that cannot fit into memory before its first step; says by how much, and which batch fits.

Only if it is certain that memory will run out: on the CPU, with TensorFlow as the Keras backend, in one process. Any
other fit starts as it would without the guard.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..shield import shielded
from ..training.gpu_settings import eager_context
from ..training.plan import FitPlan, fit_plan
from ..units import human_bytes
from .bound import Bound, bound
from .reusable import reusable_bytes


# A refusal needs no safety factor: the bound adds up what must be in memory at the same time. In
# tests/benchmarks/bound.py it was at most 0.84 of the memory that the fit actually used; with one thread, without
# oneDNN or with TensorFlow 2.15 at most 0.89.
@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a fit cannot run.

    Attributes:
        bound: The memory it needs, by part.
        available_bytes: The memory it can get, including free memory that the process already holds.
        limit_bytes: The binding limit; None if unknown.
        plan: Where its batch is set.
    """

    bound: Bound
    available_bytes: int
    limit_bytes: int | None
    plan: FitPlan = field(default_factory=FitPlan)

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
    arguments: Mapping[str, Any],
    model: Any,
    available_bytes: Callable[[], int],
    limit_bytes: int | None = None,
) -> Refusal | None:
    """Check whether a fit will certainly run out of memory. Takes a few ms; errors of the guard are not raised.

    Args:
        arguments: The arguments of ``fit``, by name, with or without defaults.
        model: A compiled model of Keras 3 or Keras 2.
        available_bytes: Reads how much memory this process can still use, including free swap. If the first reading is
            too small, it is called again after a garbage collection.
        limit_bytes: The limit to name in the text.

    Returns:
        The refusal; None if the fit may fit, or if that is unknown.
    """
    with shielded("bound before fit"):
        if not runs_on_host(model) or getattr(model, "optimizer", None) is None:
            return None
        found = bound(model, arguments)
        need = found.total_bytes
        if need <= available_bytes() + reusable_bytes():
            return None
        # Reference cycles often keep an earlier model and its data alive.
        gc.collect()
        available = available_bytes() + reusable_bytes()
        if need > available:
            return Refusal(found, available, limit_bytes, fit_plan(arguments))
    return None


def runs_on_host(model: Any) -> bool:
    """True if the steps of this model run only on the CPU in this process.

    Reads the devices that TensorFlow has already created, and creates none.
    """
    return device_types() == {"CPU"} and runs_in_this_process(model)


def runs_on_gpu(model: Any) -> bool:
    """True if the steps of this model run on the first GPU of this process."""
    return device_types() == {"CPU", "GPU"} and runs_in_this_process(model)


def device_types() -> set[str]:
    """Types of the devices that TensorFlow has created; empty before."""
    context = eager_context()
    if getattr(context, "_initialized", False) is not True:
        return set()
    return {str(one.device_type) for one in getattr(context, "_logical_devices", None) or ()}


def runs_in_this_process(model: Any) -> bool:
    """True with TensorFlow as Keras' backend, and without a distribution strategy."""
    strategy = getattr(model, "_distribute_strategy", None)
    if strategy is not None and not type(strategy).__name__.startswith("_Default"):
        return False
    keras = sys.modules.get("keras")
    is_keras_3 = getattr(keras, "__version__", "2").startswith("3")
    return not is_keras_3 or keras is None or bool(keras.backend.backend() == "tensorflow")
