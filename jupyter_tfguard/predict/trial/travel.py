"""Sends a Keras model to another process by value: its state without the values of large weights.

Keras pickles a model as an archive, which needs registered classes, ``get_config`` methods and all weights. Here the
objects themselves are pickled, attribute by attribute. Code of ``__main__`` travels by value (cloudpickle). Large
variables are created again with their shape and dtype. An optimizer is created again from its configuration, so its
state is that of a first fit. The model and its random state do not change.

Covers Keras 3 (verified with 3.15) with TensorFlow as its backend. Does not cover open files, locks and other objects that
exist only in their process.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import inspect
import io
import linecache
import marshal
import os
import pickle
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from ...errors import TfGuardError
from ..bound.graph import is_of_keras

# Larger arrays travel as shape, dtype and range, and are filled with random numbers.
ARRAY_LIMIT_BYTES = 64 << 20
NUMBERS = "biuf"  # kinds of NumPy dtypes with a range
_VARIABLE_LIMIT_BYTES = 64 << 10
# Created again when needed: compiled functions, iterators, and what only saving needs.
_SENT_AS_NONE = {"train_function", "test_function", "predict_function", "_epoch_iterator"}
_SENT_AS_NONE |= {"history", "_auto_config"}
# Nodes are sent after all layers. Layer.__new__ creates the wrappers `build` and `quantize` (Keras 3.0 to 3.15).
_LEFT_OUT = {"_inbound_nodes", "_outbound_nodes", "build", "quantize", "_compile_config"}
# State of TensorFlow's checkpoints, created on demand. Source: tensorflow.python.trackable.base.
_OF_CHECKPOINTS = "_self_"
_SEARCH_DEPTH = 6


class NotSendable(TfGuardError):
    """An object cannot be sent to another process. The text names it and the reason."""


@dataclass(frozen=True, slots=True)
class RandomArray:
    """An array that the receiver creates: random numbers from `low` to `high`; texts are empty."""

    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float

    @classmethod
    def like(cls, array: Any, count: int) -> RandomArray:
        """So many samples with the shape, dtype and range of the samples in a NumPy array of numbers."""
        shape = (count, *array.shape[1:])
        return cls(shape, array.dtype.name, array.min().item(), array.max().item())


def dump(model: Any, more: Any, file: IO[bytes]) -> None:
    """Write a model and other objects, which :func:`load` returns.

    Args:
        model: A model of Keras 3.
        more: Arrays and plain objects; a :class:`RandomArray` becomes an array.
        file: Opened for writing.

    Raises:
        NotSendable: Part of the model cannot be pickled.
    """
    pickler = _pickler_class()(file)
    try:
        pickler.dump((model, more))
        # A chain of layers is a chain of nodes, and would be as many levels deep. So nodes follow the layers.
        nodes = [(one, one._inbound_nodes, one._outbound_nodes) for one in pickler.operations]
        pickler.dump((nodes, pickler.trackers, pickler.sources))
    except Exception as bad:
        place, culprit = _culprit(model)
        kind = type(culprit).__qualname__
        raise NotSendable(f"{place} ({kind}) cannot be sent to another process: {bad}") from bad


def load(file: IO[bytes]) -> tuple[Any, Any]:
    """Read what :func:`dump` wrote. TensorFlow and Keras must be imported."""
    unpickler = pickle.Unpickler(file)
    model, more = unpickler.load()
    nodes, trackers, sources = unpickler.load()
    for name, lines in sources.items():
        linecache.cache[name] = (0, None, lines, name)  # AutoGraph reads the source of functions
    for operation, inbound, outbound in nodes:
        vars(operation).update(_inbound_nodes=inbound, _outbound_nodes=outbound)
    for tracker in trackers:
        stores = tracker.config.items()
        tracker.stored_ids = {name: {id(one) for one in store} for name, (_, store) in stores}
    return model, more


@functools.cache
def _pickler_class() -> Any:
    import cloudpickle  # not needed at kernel start

    class ModelPickler(cloudpickle.Pickler):  # type: ignore[misc]
        """Remembers from one dump to the next which objects it has met."""

        def __init__(self, file: IO[bytes]) -> None:
            super().__init__(file, protocol=5)
            self.operations: list[Any] = []
            self.trackers: list[Any] = []
            self.sources: dict[str, list[str]] = {}

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, types.CodeType):  # cloudpickle would drop the name of its file
                if not os.path.exists(obj.co_filename):  # a cell
                    self.sources[obj.co_filename] = linecache.getlines(obj.co_filename)
                return marshal.loads, (marshal.dumps(obj),)
            found = None if isinstance(obj, type) else _reduced(obj)
            if found is None:
                return super().reducer_override(obj)
            if hasattr(obj, "_inbound_nodes"):
                self.operations.append(obj)
            elif hasattr(obj, "stored_ids"):
                self.trackers.append(obj)
            return found

    return ModelPickler


def _reduced(obj: Any) -> Any:
    """How to send this object, as ``__reduce__`` returns it; None for what cloudpickle can send."""
    tf, keras, np = sys.modules["tensorflow"], sys.modules["keras"], sys.modules["numpy"]
    if isinstance(obj, RandomArray):
        return _random_array, (obj.shape, obj.dtype, obj.low, obj.high)
    if isinstance(obj, np.ndarray):
        is_large = obj.nbytes > ARRAY_LIMIT_BYTES and obj.dtype.kind in NUMBERS
        return _reduced(RandomArray.like(obj, len(obj))) if is_large else None
    if isinstance(obj, types.ModuleType):
        # tf.keras is a module that loads itself later, unknown to pickle.
        is_lazy = type(obj) is not types.ModuleType
        return (importlib.import_module, (obj.__name__,)) if is_lazy else None
    if isinstance(obj, tf.Variable):
        return _variable, _variable_arguments(obj)
    if isinstance(obj, keras.optimizers.Optimizer):
        return _optimizer, (type(obj), _optimizer_config(obj))
    if isinstance(obj, tf.Tensor) and hasattr(obj, "numpy"):
        return tf.constant, (obj.numpy(), obj.dtype)
    if isinstance(obj, tf.types.experimental.PolymorphicFunction):
        how = {"autograph": obj._autograph, "jit_compile": obj._jit_compile}
        return _tf_function, (obj.python_function, obj.input_signature, how)
    if type(obj).__name__ == "DynamicBackend":
        return type(obj), (obj.name,)  # its __getattr__ fails on an empty object
    if _is_tracking(obj):
        return _reduced_tracking(obj)
    saveable = sys.modules["keras.src.saving.keras_saveable"].KerasSaveable
    if isinstance(obj, saveable) and "lookup_table" in vars(obj):
        # The table exists only in its process. An adapted layer has no vocabulary in its configuration.
        words = obj.get_vocabulary(include_special_tokens=False)
        return _layer, (type(obj), obj.get_config() | {"vocabulary": words})
    if isinstance(obj, keras.Model):
        return _empty_model, (type(obj), _own_bases(type(obj))), _state(obj), None, None, _set_state
    if isinstance(obj, (saveable, keras.Variable)):
        return copyreg.__newobj__, (type(obj),), _state(obj), None, None, _set_state  # type: ignore[attr-defined]
    return None


def _own_bases(kind: type) -> list[tuple[type, tuple[type, ...]]]:
    """The user's classes above a model, with their bases: Keras replaces ``Model`` there when a model is made of layers."""
    model = sys.modules["keras"].Model
    own = [one for one in kind.__mro__ if issubclass(one, model) and not is_of_keras(one)]
    return [(one, one.__bases__) for one in own]


def _empty_model(kind: Any, bases: list[tuple[type, tuple[type, ...]]]) -> Any:
    for one, wanted in reversed(bases):
        if one.__bases__ != wanted:
            one.__bases__ = wanted
    return kind.__new__(kind)


def _state(obj: Any) -> dict[str, Any]:
    return {
        name: None if name in _SENT_AS_NONE else value
        for name, value in vars(obj).items()
        if name not in _LEFT_OUT and not name.startswith(_OF_CHECKPOINTS)
    }


def _set_state(obj: Any, state: dict[str, Any]) -> None:
    vars(obj).update(state)  # not setattr, with which Keras tracks what is set


def _is_tracking(obj: Any) -> bool:
    """True for Keras' containers that register what is put into them, and for their register."""
    return type(obj).__module__ == "keras.src.utils.tracking"


def _reduced_tracking(obj: Any) -> Any:
    if hasattr(obj, "stored_ids"):
        state = vars(obj) | {"stored_ids": {}}
        return copyreg.__newobj__, (type(obj),), state, None, None, _set_state  # type: ignore[attr-defined]
    content = dict(obj) if isinstance(obj, dict) else list(obj)
    state = {"tracker": obj.tracker, "content": content}
    return copyreg.__newobj__, (type(obj),), state, None, None, _fill  # type: ignore[attr-defined]


def _fill(container: Any, state: dict[str, Any]) -> None:
    container.tracker = None
    add = container.extend if isinstance(container, list) else container.update
    add(state["content"])
    container.tracker = state["tracker"]


def _tf_function(function: Any, signature: Any, how: dict[str, Any]) -> Any:
    return sys.modules["tensorflow"].function(function, input_signature=signature, **how)


def _variable_arguments(variable: Any) -> tuple[Any, ...]:
    size = variable.shape.num_elements() * variable.dtype.size
    value = variable.numpy() if size <= _VARIABLE_LIMIT_BYTES else None
    name = variable.name.partition(":")[0]
    return tuple(variable.shape), variable.dtype.name, variable.trainable, name, value


def _variable(shape: tuple[int, ...], dtype: str, trainable: bool, name: str, value: Any) -> Any:
    """A variable. An initializer fills a large one: its temporary tensors leave free memory in TensorFlow's pool."""
    tf, keras = sys.modules["tensorflow"], sys.modules["keras"]
    create = keras.initializers.GlorotUniform(0) if tf.as_dtype(dtype).is_floating else tf.zeros
    start = value if value is not None else lambda: create(shape, dtype)
    return tf.Variable(start, dtype=dtype, trainable=trainable, name=name)


def _optimizer_config(optimizer: Any) -> dict[str, Any]:
    """The arguments that create this optimizer. A schedule or an inner optimizer is itself among them.

    A schedule often lacks the ``get_config`` that Keras would call, so a copy without schedule is asked.
    """
    copied = object.__new__(type(optimizer))
    vars(copied).update(vars(optimizer))
    rate = vars(optimizer).get("_learning_rate")
    is_number = rate is None or hasattr(rate, "numpy")
    if not is_number:
        vars(copied)["_learning_rate"] = None
    config: dict[str, Any] = dict(copied.get_config())
    if not is_number:
        config["learning_rate"] = rate
    if "inner_optimizer" in config:
        config["inner_optimizer"] = optimizer.inner_optimizer
    return config


def _layer(kind: Any, config: dict[str, Any]) -> Any:
    return kind.from_config(config)


def _optimizer(kind: Any, config: dict[str, Any]) -> Any:
    return kind(**config)


def _random_array(shape: tuple[int, ...], dtype_name: str, low: float, high: float) -> Any:
    """Creates no temporary array: its memory would stay with the process, and fit would need less."""
    np = sys.modules["numpy"]
    dtype, generator = np.dtype(dtype_name), np.random.default_rng(0)
    if dtype.kind in "iu":
        return generator.integers(int(low), int(high), shape, dtype, endpoint=True)
    if dtype.name in ("float32", "float64"):
        found = generator.random(shape, dtype)
        found *= dtype.type(high - low)
        found += dtype.type(low)
        return found
    return np.full(shape, "" if dtype.kind == "O" else low, dtype)


def _culprit(obj: Any, place: str = "model", depth: int = _SEARCH_DEPTH) -> tuple[str, Any]:
    """The innermost part that cannot be sent, with its place in the model."""
    for name, part in _parts(obj) if depth else ():
        try:
            _pickler_class()(io.BytesIO()).dump(part)
        except Exception:
            return _culprit(part, f"{place}{name}", depth - 1)
    return place, obj


def _parts(obj: Any) -> Iterator[tuple[str, Any]]:
    """What this object refers to, each with the text that leads to it. What a user knows comes first."""
    if isinstance(obj, types.FunctionType):
        used = inspect.getclosurevars(obj)
        for name, part in {**used.nonlocals, **used.globals}.items():
            yield f", name {name}", part
    elif isinstance(obj, Mapping):
        for key, part in obj.items():
            yield f"[{key!r}]", part
    elif isinstance(obj, (list, tuple, set)):
        for index, part in enumerate(obj):
            yield f"[{index}]", part
    elif hasattr(obj, "__dict__"):
        for layer in getattr(obj, "layers", ()):
            yield f", layer {layer.name}", layer
        if not isinstance(obj, type):
            yield f", class {type(obj).__qualname__}", type(obj)
        for name, part in sorted(_state(obj).items(), key=lambda item: item[0].startswith("_")):
            yield f".{name}", part
