"""What is known about the models of the user: name, parameters and optimizer, and which of them were fitted.

A loop that builds new models is recognised by the objects, not by their names.
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

from .plan import item_bytes

_KERAS = ("keras", "tf_keras", "tensorflow")
_KERAS_STATE = "keras.src.backend.common.global_state"


class ModelNumbers:
    """Numbers the models in the order of their first fit, and notices ``clear_session()``; keeps none of them alive."""

    def __init__(self) -> None:
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._count = 0
        self._state: weakref.ref[Any] | None = None

    def facts(self, model: Any) -> dict[str, Any]:
        """Fields of the event of a fit that starts.

        ``model_number``: of this object, from 1. ``models_alive``: fitted models that still exist, this one included.
        ``session_cleared``: ``clear_session()`` was called since the last fit; None if unknown. ``jit_compile``: whether XLA
        compiles the model.
        """
        number = self._numbers.get(model)
        if number is None:
            self._count += 1
            number = self._numbers[model] = self._count
        return {
            "model_number": number,
            "models_alive": len(self._numbers),
            "session_cleared": self._is_cleared(),
            "jit_compile": bool(vars(model).get("_jit_compile")),
        }

    def _is_cleared(self) -> bool | None:
        # Keras 3 replaces this object in clear_session(); verified with Keras 3.0 to 3.15.
        state = getattr(sys.modules.get(_KERAS_STATE), "GLOBAL_STATE_TRACKER", None)
        if state is None:
            return None
        earlier, self._state = self._state, weakref.ref(state)
        return None if earlier is None else earlier() is not state


def describe_model(model: Any) -> dict[str, Any]:
    """``model_name``, ``parameter_count`` (None before the model is built) and ``optimizer``."""
    name = getattr(model, "name", None)
    return {
        "model_name": name if isinstance(name, str) else None,
        "parameter_count": parameter_count(model),
        "optimizer": _optimizer(model),
    }


def _optimizer(model: Any) -> str | None:
    """Class name of the optimizer; None if user code overrides ``compile``: Keras may hold an unused default."""
    compiles = getattr(type(model), "compile", None)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or getattr(compiles, "__module__", "").partition(".")[0] not in _KERAS:
        return None
    # With mixed precision the actual optimizer is wrapped.
    return type(getattr(optimizer, "inner_optimizer", None) or optimizer).__name__


def parameter_count(model: Any) -> int | None:
    """Number of parameters; None while the model is not built."""
    if not getattr(model, "built", False):
        return None
    weights = model.weights
    shapes = [tuple(weight.shape) for weight in weights]
    return sum(math.prod(int(size) for size in shape) for shape in shapes)


def variable_bytes(variable: Any) -> int:
    """Bytes of a variable of any version of Keras."""
    return math.prod(int(size) for size in variable.shape) * item_bytes(variable.dtype)
