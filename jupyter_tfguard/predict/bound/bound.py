"""A lower bound of the memory that ``fit`` needs, computed before its first step from known sizes.

For host memory and a fit on the CPU. Counts only memory that is certainly needed. Does not count the workspace of
operations, TensorFlow's graph, the input pipeline, and memory lost to rounding in the pool. Calls TensorFlow only for
the number of elements of a dataset, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...training.models import variable_bytes
from ...training.plan import LARGEST_BATCH, FitPlan, rounded_down
from .activations import Activations
from .graph import is_of_keras

# Variables per weight that an optimizer adds, with default options.
_SLOTS = {"adam": 2, "adamw": 2, "nadam": 2, "adamax": 2, "lamb": 2, "adadelta": 2, "ftrl": 2}
_SLOTS |= {"rmsprop": 1, "adagrad": 1, "lion": 1}
# It leaves room for what the bound does not count: the fits of tests/bench/bound.py used up to 1 / 0.4 of their
# bound, plus TensorFlow's graph for each layer.
FITTING_SHARE = 0.4
_GRAPH_BYTES = 64 << 20
_GRAPH_BYTES_EACH = 2 << 20


@dataclass(frozen=True, slots=True)
class Bound:
    """The memory that a fit needs in addition to the memory already in use.

    Attributes:
        batch_size: None if it is not certain; then nothing that depends on it is counted.
        copies_bytes: Tensors into which whole NumPy arrays are copied.
        conversion_bytes: Peak while the arrays are copied and converted, before the first step.
        gradients_bytes: Gradients that exist at the same time: the largest one, or all of them.
        slots_bytes: Variables that the optimizer has not created yet.
        activations_bytes: Tensors kept for the backward pass, and the batch itself.
        largest_bytes: Additional memory for one layer: its output, or the gradient of that output.
        unknown: Parts that are not counted because their size is unknown.
        call_count: Layer calls in a step. Each makes TensorFlow's graph larger, which is not counted either.
    """

    batch_size: int | None
    copies_bytes: int
    conversion_bytes: int
    gradients_bytes: int
    slots_bytes: int
    activations_bytes: int
    largest_bytes: int
    unknown: tuple[str, ...]
    call_count: int = 0

    @property
    def fixed_bytes(self) -> int:
        """Bytes that do not depend on the batch."""
        return self.copies_bytes + self.gradients_bytes + self.slots_bytes

    @property
    def batch_bytes(self) -> int:
        """Bytes that depend on the batch."""
        return self.activations_bytes + self.largest_bytes

    @property
    def total_bytes(self) -> int:
        """Peak bytes in use at the same time."""
        return max(self.conversion_bytes, self.fixed_bytes + self.batch_bytes)

    def parts(self) -> dict[str, int]:
        """Bytes by part, for the message."""
        return {
            "copies of arrays": self.copies_bytes,
            "gradients": self.gradients_bytes,
            "optimizer": self.slots_bytes,
            "activations": self.activations_bytes,
            "output of a layer": self.largest_bytes,
        }

    def fitting_batch(self, available_bytes: int, sample_count: int | None) -> int | None:
        """A smaller batch that should fit, a round number; None if none does or it is unknown."""
        if self.unknown or not self.batch_size or not self.batch_bytes:
            return None
        room = available_bytes - _GRAPH_BYTES - _GRAPH_BYTES_EACH * self.call_count
        found = int((room * FITTING_SHARE - self.fixed_bytes) * self.batch_size / self.batch_bytes)
        if not 0 < found < self.batch_size or self.conversion_bytes > room:
            return None
        return min(rounded_down(found), sample_count or LARGEST_BATCH)


def bound(model: Any, plan: FitPlan) -> Bound:
    """Compute the bound for one call of ``fit``.

    Args:
        model: A compiled model of Keras 3 or Keras 2.
        plan: The fit.

    Raises:
        Exception: The model or data has an unknown structure; the caller continues without a bound.
    """
    copies, conversion = plan.copies_bytes
    gradients, slots = _of_weights(model)
    size = plan.first_batch
    unknown: list[str] = [] if size else ["the batch size"]
    if not getattr(model, "built", False):
        unknown.append("the weights")
    activations = largest = count = 0
    reason = _custom_step_reason(model)
    found = Activations.of(model) if size and reason is None else None
    if reason is not None:
        unknown.append(reason)
    elif size and found is None:
        unknown.append("the layers of a model that is a class of its own")
    if size and found is not None:
        unknown += found.unknown
        activations = found.kept_bytes(size)
        largest, count = found.peak_bytes(size) - activations, found.call_count
    return Bound(
        size, copies, conversion, gradients, slots, activations, largest, tuple(unknown), count
    )


def _of_weights(model: Any) -> tuple[int, int]:
    """Bytes of the gradients, and of the optimizer slots not created yet."""
    if not getattr(model, "built", False):
        return 0, 0
    tables = _embedding_ids(model)
    sizes = [
        variable_bytes(weight) for weight in model.trainable_weights if id(weight) not in tables
    ]
    inner = getattr(model.optimizer, "inner_optimizer", None)
    optimizer = inner or model.optimizer
    # A gradient is applied as soon as it is computed, unless the optimizer needs all gradients first.
    waits = inner is not None or getattr(optimizer, "global_clipnorm", None) is not None
    is_built = bool(getattr(optimizer, "built", False) or getattr(optimizer, "_built", False))
    each = 0 if is_built else slots_per_weight(optimizer)
    return sum(sizes) if waits else max(sizes, default=0), each * sum(sizes)


def _embedding_ids(model: Any) -> set[int]:
    """Ids of the weights of embeddings: a batch uses only some rows of these, also in gradients and slots."""
    found = set()
    for layer in flat_layers(model):
        if "Embedding" in type(layer).__name__:
            found |= {id(weight) for weight in layer.trainable_weights}
    return found


def flat_layers(model: Any) -> list[Any]:
    """The layers of a model and of nested models."""
    found = []
    for layer in getattr(model, "layers", ()):
        found.append(layer)
        found += flat_layers(layer)
    return found


def slots_per_weight(optimizer: Any) -> int:
    """Number of variables that the optimizer creates for each weight; 0 for an unknown optimizer."""
    name = type(optimizer).__name__.lower()
    found = _SLOTS.get(name, 0)
    if name == "sgd":
        found = int(bool(getattr(optimizer, "momentum", 0)))
    if name == "rmsprop":
        found += bool(getattr(optimizer, "momentum", 0)) + bool(getattr(optimizer, "centered", 0))
    found += bool(getattr(optimizer, "amsgrad", False)) + bool(getattr(optimizer, "use_ema", False))
    return found + bool(getattr(optimizer, "gradient_accumulation_steps", None))


def _custom_step_reason(model: Any) -> str | None:
    """Why a training step may differ from the graph of the model; None if it does not."""
    kind = type(model)
    if not all(is_of_keras(getattr(kind, name, None)) for name in ("train_step", "fit")):
        return "a training step of the model's own"
    if getattr(model, "jit_compile", False) or getattr(model, "_jit_compile", False):
        return "what XLA keeps"
    if any(getattr(layer, "_remat_mode", None) for layer in flat_layers(model)):
        return "what rematerialization saves"
    losses, outputs = getattr(model, "loss", None), getattr(model, "outputs", None) or ()
    if len(outputs) > 1 and isinstance(losses, (dict, list, tuple)):
        given = list(losses.values()) if isinstance(losses, dict) else list(losses)
        if len(given) < len(outputs) or None in given:
            return "outputs without a loss"
    return None
