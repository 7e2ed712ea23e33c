"""Refuses a ``fit`` that cannot fit into memory, before its first step; says by how much, and which batch should fit.

Only where the bound is certain to be exceeded: on the CPU, with TensorFlow as Keras' backend, in one process. Everything else
starts as it would without the guard.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..shield import shielded
from ..training.gpu_settings import eager_context
from ..units import human_bytes
from .bound import Bound, bound
from .reusable import reusable_bytes

# Refusing needs no factor: the bound adds up what must be in memory at one moment. In tests/benchmarks/bound.py it was at most 0.84
# of what the fit really took, with one thread, without oneDNN or with TensorFlow 2.15 at most 0.89.
# The batch that is suggested has room for what the bound leaves out: the fits of that benchmark took up to 1 / 0.4 of their
# bound, and TensorFlow's graph of each layer.
FITTING_SHARE = 0.4
_GRAPH_BYTES = 64 << 20
_GRAPH_BYTES_EACH = 2 << 20


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a fit cannot run.

    Attributes:
        bound: What it needs, by part.
        available_bytes: What it can have, memory that the process holds free included.
        limit_bytes: Of the memory that counts; None where it is not known.
    """

    bound: Bound
    available_bytes: int
    limit_bytes: int | None

    @property
    def need_bytes(self) -> int:
        """At least so much more memory."""
        return self.bound.total_bytes

    @property
    def fitting_batch_size(self) -> int | None:
        """The largest batch that should fit, as a round number; None for none, or where nobody can say."""
        graph = _GRAPH_BYTES + _GRAPH_BYTES_EACH * self.bound.call_count
        found = self.bound.largest_batch(self.available_bytes - graph, share=FITTING_SHARE)
        if found is None or self.bound.batch_size is None or found >= self.bound.batch_size:
            return None
        if found < 8:
            return found
        # Down to two leading binary digits: 96, 128, 192, 256.
        step = 1 << (found.bit_length() - 2)
        return found // step * step

    def text(self) -> str:
        """For people: numbers, what takes most, what to change, and how to run it anyway."""
        size = self.bound.batch_size
        call = "fit()" if size is None else f"fit() with batch_size={size}"
        limit = "" if self.limit_bytes is None else f" (limit {human_bytes(self.limit_bytes)})"
        parts = sorted(self.bound.parts().items(), key=lambda part: -part[1])
        most = ", ".join(f"{name} {human_bytes(number)}" for name, number in parts[:3] if number)
        sentences = [
            f"{call} needs at least {human_bytes(self.need_bytes)} more memory; "
            f"{human_bytes(self.available_bytes)} are available{limit}.",
            f"Estimate by part: {most}.",
            *self._advice(),
            "To run it anyway, enter %tfguard pause first.",
        ]
        return " ".join(sentences)

    def _advice(self) -> list[str]:
        found = []
        if self.fitting_batch_size is not None:
            found.append(f"batch_size={self.fitting_batch_size} should fit.")
        elif self.bound.batch_bytes > self.bound.fixed_bytes:
            found.append("Use a smaller batch or a smaller model.")
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
    """Say whether a fit is certain to run out of memory. Takes some milliseconds; raises nothing of ours.

    Args:
        arguments: Of ``fit``, by name, defaults included or not.
        model: Compiled, of Keras 3 or Keras 2.
        available_bytes: Reads how much memory this process can still take, with free swap if there is any. Called again after
            garbage was collected, when the first answer was not enough.
        limit_bytes: The limit to name in the text.

    Returns:
        None to let it run: it may fit, or nobody can say.
    """
    with shielded("bound before fit"):
        if not runs_on_host(model) or getattr(model, "optimizer", None) is None:
            return None
        found = bound(model, arguments)
        need = found.total_bytes
        if need <= available_bytes() + reusable_bytes():
            return None
        # An earlier model and its data often wait in cycles of references.
        gc.collect()
        available = available_bytes() + reusable_bytes()
        if need > available:
            return Refusal(found, available, limit_bytes)
    return None


def runs_on_host(model: Any) -> bool:
    """True when the steps of this model run on the CPU of this process, and nowhere else.

    Looks at the devices that TensorFlow has made, and makes none.
    """
    context = eager_context()
    if getattr(context, "_initialized", False) is not True:
        return False
    if any(d.device_type != "CPU" for d in getattr(context, "_logical_devices", None) or ()):
        return False
    strategy = getattr(model, "_distribute_strategy", None)
    if strategy is not None and not type(strategy).__name__.startswith("_Default"):
        return False
    keras = sys.modules.get("keras")
    is_keras_3 = getattr(keras, "__version__", "2").startswith("3")
    return not is_keras_3 or keras is None or bool(keras.backend.backend() == "tensorflow")
