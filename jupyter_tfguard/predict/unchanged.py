"""Restores a model after its training step was traced: tracing runs Python code that builds metrics and optimizers."""

from __future__ import annotations

import contextlib
import gc
import random
import sys
from collections.abc import Iterator
from typing import Any

_MODULES = ("keras.", "tensorflow.python.trackable.data_structures")


@contextlib.contextmanager
def unchanged(model: Any) -> Iterator[None]:
    """Restore the Python state of the model on exit, Keras's global state, and the state of the global random generators.

    Covers the attributes of all Keras objects that the model refers to, and their lists, dictionaries and sets. Does not
    cover the values of variables, nor objects that are not of Keras.
    """
    objects, containers = _state_of([model, *_unbuilt_layers(model), *_global_state()])
    python_random = random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_random = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        for one, attributes in objects:
            vars(one).clear()
            vars(one).update(attributes)
        for container, content in containers:
            _refill(container, content)
        random.setstate(python_random)
        if numpy is not None:
            numpy.random.set_state(numpy_random)


def _unbuilt_layers(model: Any) -> list[Any]:
    """If the model is not built, every layer of this process that has no weights yet: the trace may build it.

    The model need not refer to them: they can be in a list of the notebook, or in an object that is not of Keras.
    """
    if all(one.built for one in model._flatten_layers()):
        return []
    layer = sys.modules["keras"].layers.Layer
    found = [one for one in gc.get_objects() if issubclass(type(one), layer)]
    return [one for one in found if not vars(one).get("built")]


def _state_of(
    roots: list[Any],
) -> tuple[list[tuple[Any, dict[str, Any]]], list[tuple[Any, Any]]]:
    """Attributes of each Keras object, and content of each container, reached from these."""
    objects: list[tuple[Any, dict[str, Any]]] = []
    containers: list[tuple[Any, Any]] = []
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict) and not issubclass(type(one), dict):
            one = one.__wrapped__  # type: ignore[attr-defined]  # a proxy of TensorFlow
        if isinstance(one, dict):
            containers.append((one, dict(one)))
            waiting += one.values()
        elif isinstance(one, (list, set)):
            containers.append((one, list(one)))
            waiting += one
        elif isinstance(one, tuple):
            waiting += one
        if _has_state(one):
            objects.append((one, dict(vars(one))))
            waiting += vars(one).values()
    return objects, containers


def _has_state(value: Any) -> bool:
    """True for an instance of a Keras class or of a subclass of one, and for TensorFlow's tracked lists."""
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    return any(base.__module__.startswith(_MODULES) for base in type(value).__mro__)


def _refill(container: Any, content: Any) -> None:
    # Keras's own lists, dictionaries and sets track what is added: use the methods of the built-in types.
    if isinstance(container, dict):
        dict.clear(container)
        dict.update(container, content)
    elif isinstance(container, list):
        list.__setitem__(container, slice(None), content)
    else:
        set.clear(container)
        set.update(container, content)


def _global_state() -> list[dict[str, Any]]:
    """Keras's state of this thread: the numbers in default names, and the random generator of calls without a seed."""
    state = sys.modules.get("keras.src.backend.common.global_state")
    tracker = getattr(state, "GLOBAL_STATE_TRACKER", None)
    return [] if tracker is None else [vars(tracker)]
