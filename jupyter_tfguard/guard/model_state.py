"""The variables of a model in training: weights, random seeds, and the state of its optimizer.

Covers Keras 3 with TensorFlow, JAX and PyTorch, Keras 2 (TensorFlow 2.15) and tf_keras. Metrics are left out: Keras resets them at each
epoch.
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
        weights: Weights, and the states of the random number generators.
        optimizer: Slots, iterations, learning rate and loss scale.
        optimizer_name: Class name of the optimizer; None if there is none.
    """

    weights: tuple[Any, ...]
    optimizer: tuple[Any, ...]
    optimizer_name: str | None

    @classmethod
    def of(cls, model: Any, optimizer: Any = None, *, build_optimizer: bool = False) -> ModelState:
        """The state of a built model.

        Args:
            model: Not changed, except for the optimizer's variables.
            optimizer: Trains the model; None for the one that the model has.
            build_optimizer: Create the optimizer's variables if they do not exist yet.

        Raises:
            ModelNotSupported: The model is not built, or has several optimizers.
        """
        if not getattr(model, "built", False):
            raise ModelNotSupported(
                "The model has no weights yet. Call it on one batch of data first."
            )
        if optimizer is None:
            optimizer = the_optimizer(model)
        if build_optimizer and optimizer is not None:
            _build(optimizer, model.trainable_variables)
        name = None if optimizer is None else type(inner_optimizer(optimizer)).__name__
        return cls(tuple(model.variables), tuple(_variables_of(optimizer)), name)

    def named(self) -> Iterator[tuple[str, Any]]:
        """Each variable with its name; sorting by name keeps the order."""
        for part, variables in (("weights", self.weights), ("optimizer", self.optimizer)):
            for number, variable in enumerate(variables):
                yield f"{part}/{number:04d}", variable


def the_optimizer(model: Any) -> Any:
    """The only optimizer of a model; None if it has none.

    Raises:
        ModelNotSupported: It has several, like models that train two adversarial networks.
    """
    found = {id(one): one for one in _flattened(vars(model).values()) if _is_optimizer(one)}
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
    """The optimizer inside a LossScaleOptimizer; otherwise the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", None) or optimizer


def _flattened(values: Any) -> Iterator[Any]:
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
    # A method in legacy optimizers; in Keras 2.15 a list that is also callable.
    variables = list(kept if isinstance(kept, (list, tuple)) else kept())
    yield from variables
    seen = {id(one) for one in variables}
    # Keras 2 leaves these out of `variables`.
    others = [vars(optimizer).get("_loss_scale"), inner_optimizer(optimizer)]
    scale = [] if others[0] is None else list(vars(others[0]).values())
    for one in [*_flattened(scale), getattr(others[1], "_learning_rate", None)]:
        if is_variable(one) and id(one) not in seen:
            seen.add(id(one))
            yield one


def is_variable(value: Any) -> bool:
    """True for a variable of TensorFlow or Keras."""
    return hasattr(value, "assign") and hasattr(value, "shape") and hasattr(value, "dtype")


def dtype_name(variable: Any) -> str:
    """Name of the dtype, such as ``float32``."""
    return str(getattr(variable.dtype, "name", variable.dtype))


def host_array(variable: Any) -> Any:
    """The value as a NumPy array. On the CPU it shares the variable's memory, so it must not be written to."""
    kept = getattr(variable, "value", variable)
    tensor = variable if callable(kept) else kept
    if hasattr(tensor, "read_value"):
        tensor = tensor.read_value()
    if hasattr(tensor, "detach"):
        return _of_torch(tensor, dtype_name(variable))
    return sys.modules["numpy"].asarray(tensor)


def _of_torch(tensor: Any, name: str) -> Any:
    """The array of a PyTorch tensor, which NumPy itself does not read while it requires a gradient."""
    tensor = tensor.detach().cpu()
    kind = getattr(sys.modules.get("ml_dtypes"), name, None)
    if kind is None:
        return tensor.numpy()
    # PyTorch gives NumPy no bfloat16 and no float8.
    same_width = {1: "uint8", 2: "int16"}[tensor.element_size()]
    return tensor.contiguous().view(getattr(sys.modules["torch"], same_width)).numpy().view(kind)
