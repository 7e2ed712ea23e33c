"""Which models were fitted: a loop that builds new models is recognised by the objects, not by their names."""

from __future__ import annotations

import sys
import weakref
from typing import Any

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
