"""Every variable that makes up a model in training: its weights, its random seeds, and what its optimizer has learned.

For Keras 3 with TensorFlow, Keras 2 (TensorFlow 2.15) and tf_keras. Metrics are left out: Keras resets them at each epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import TfGuardError


class ModelNotSupported(TfGuardError):
    """The state of this model cannot be saved or restored; the text says why."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """The variables of a model, always in the same order.

    Attributes:
        weights: And the states of its random number generators.
        optimizer: Slots, iterations, learning rate and loss scale.
        optimizer_name: Class of the optimizer; None when there is none.
    """

    weights: tuple[Any, ...]
    optimizer: tuple[Any, ...]
    optimizer_name: str | None

    @classmethod
    def of(cls, model: Any, *, build_optimizer: bool = False) -> ModelState:
        """The state of a built model.

        Args:
            model: Not changed, but for its optimizer's variables.
            build_optimizer: Create the optimizer's variables where it has none yet.

        Raises:
            ModelNotSupported: It is not built, or has several optimizers.
        """
        if not getattr(model, "built", False):
            raise ModelNotSupported(
                "The model has no weights yet. Call it on one batch of data first."
            )
        optimizer = the_optimizer(model)
        if build_optimizer and optimizer is not None:
            _build(optimizer, model.trainable_variables)
        name = None if optimizer is None else type(inner_optimizer(optimizer)).__name__
        return cls(tuple(model.variables), tuple(_variables_of(optimizer)), name)

    def named(self) -> Iterator[tuple[str, Any]]:
        """Each variable, with a name that sorts in this order."""
        for part, variables in (("weights", self.weights), ("optimizer", self.optimizer)):
            for number, variable in enumerate(variables):
                yield f"{part}/{number:04d}", variable


def the_optimizer(model: Any) -> Any:
    """The one optimizer of a model; None when it has none.

    Raises:
        ModelNotSupported: It has several, as models do that train two networks against each other.
    """
    found = {id(one): one for one in _in(vars(model).values()) if _is_optimizer(one)}
    if (compiled := getattr(model, "optimizer", None)) is not None:
        found[id(compiled)] = compiled
    for one in list(found.values()):
        inner = inner_optimizer(one)
        if inner is not one:
            found.pop(id(inner), None)
    if len(found) > 1:
        names = ", ".join(sorted(type(one).__name__ for one in found.values()))
        raise ModelNotSupported(
            f"The model has {len(found)} optimizers ({names}); only models with one can be saved here."
        )
    return next(iter(found.values()), None)


def inner_optimizer(optimizer: Any) -> Any:
    """What LossScaleOptimizer is wrapped around; else the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", None) or optimizer


def _in(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()
        else:
            yield value


def _is_optimizer(value: Any) -> bool:
    names = {kind.__name__ for kind in type(value).__mro__}
    return bool(names & {"Optimizer", "BaseOptimizer", "OptimizerV2"})


def _build(optimizer: Any, variables: Any) -> None:
    if hasattr(optimizer, "_create_all_weights"):  # Keras' legacy optimizers
        optimizer._create_all_weights(variables)
    elif not getattr(optimizer, "built", False) and not getattr(optimizer, "_built", False):
        optimizer.build(variables)


def _variables_of(optimizer: Any) -> Iterator[Any]:
    if optimizer is None:
        return
    kept = optimizer.variables
    # A method of legacy optimizers; Keras 2.15 has a list that can be called as well.
    variables = list(kept if isinstance(kept, (list, tuple)) else kept())
    yield from variables
    seen = {id(one) for one in variables}
    # Keras 2 leaves these out of `variables`.
    others = [vars(optimizer).get("_loss_scale"), inner_optimizer(optimizer)]
    scale = [] if others[0] is None else list(vars(others[0]).values())
    for one in [*_in(scale), getattr(others[1], "_learning_rate", None)]:
        if is_variable(one) and id(one) not in seen:
            seen.add(id(one))
            yield one


def is_variable(value: Any) -> bool:
    """True for a variable of TensorFlow or Keras."""
    return hasattr(value, "assign") and hasattr(value, "shape") and hasattr(value, "dtype")


def dtype_name(variable: Any) -> str:
    """``float32``."""
    return str(getattr(variable.dtype, "name", variable.dtype))


def host_array(variable: Any) -> Any:
    """The value as a NumPy array, which is the variable's own memory where that is on the CPU. Not to be written to."""
    kept = getattr(variable, "value", variable)
    tensor = variable if callable(kept) else kept
    if hasattr(tensor, "read_value"):
        tensor = tensor.read_value()
    return sys.modules["numpy"].asarray(tensor)
