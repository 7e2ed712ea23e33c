"""The graph of one training step, traced without executing it, for a batch of any size.

For a compiled model of Keras 3 with TensorFlow as its backend. Weights and optimizer slots that do not exist yet become
handles without memory, so a model need not be built.
"""

from __future__ import annotations

import contextlib
import gc
import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...training.models import variable_bytes
from ...training.plan import FitPlan
from ..own_memory import runs_on_host

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class CannotTrace(Exception):
    """The training step cannot be traced; the text says why."""


@dataclass(slots=True)
class Trace:
    """The graph of a training step.

    Attributes:
        graph: A ``FuncGraph`` whose batch dimension is unknown.
        new_variables: Variables without memory that take the place of weights, optimizer slots and metric variables that
            the first step of ``fit`` will create.
        gradients_bytes: Size of all trainable weights.
        new_weights_bytes: Size of the weights that do not exist yet.
        layers: Names of the model's layers.
    """

    graph: Any
    new_variables: list[Any]
    gradients_bytes: int
    new_weights_bytes: int
    layers: set[str]

    def free(self, gradient_names: Iterable[str]) -> None:
        """Free the graph now. TensorFlow would keep it for the life of the process if it has custom gradients.

        Args:
            gradient_names: Custom gradients of its operations: their functions, which refer to the graph, are registered by
                name.
        """
        registered = sys.modules["tensorflow.python.framework.ops"].gradient_registry._registry
        for name in gradient_names:
            registered.pop(name, None)
        sys.modules["tensorflow.python.framework.func_graph"].dismantle_func_graph(self.graph)
        self.graph, self.new_variables = None, []


def traced_step(model: Any, plan: FitPlan) -> Trace:
    """Trace the model's ``train_step``. The model is unchanged afterwards.

    Args:
        model: A compiled model.
        plan: The fit. Only shapes and dtypes of the data are used, so ``tf.TensorSpec`` may take the place of arrays.

    Raises:
        CannotTrace: The data has no known shape, or the code of the model raised an error.
    """
    reason = _reason(model)
    if reason is not None:
        raise CannotTrace(reason)
    data = _specs_of(plan)
    tensorflow = sys.modules["tensorflow"]
    func_graph = sys.modules["tensorflow.python.framework.func_graph"]
    step = tensorflow.autograph.experimental.do_not_convert(lambda batch: model.train_step(batch))
    created: list[Any] = []

    def create(_: Any, **options: Any) -> Any:
        created.append(_without_memory(options))
        return created[-1]

    try:
        with unchanged(model), tensorflow.variable_creator_scope(create):
            graph = func_graph.func_graph_from_py_func("train_step", step, (data,), {})
            return Trace(graph, created, *_weights_of(model, created), _layers_of(model))
    except Exception as error:  # the user's code runs here, and may raise anything
        first = first_line(error).rstrip(".")
        raise CannotTrace(
            f"its training step raised {type(error).__name__} while it was traced: {first}"
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error of Keras that says what is wrong."""
    lines = [line.strip() for line in _ESCAPES.sub("", str(error)).splitlines() if line.strip()]
    # Keras puts the layer's own message below this line.
    if len(lines) > 1 and lines[0].startswith("Exception encountered when calling"):
        del lines[0]
    return lines[0][:300] if lines else "no message"


def _reason(model: Any) -> str | None:
    """Why a model cannot be traced; None if it may be possible."""
    keras = sys.modules.get("keras")
    if "tensorflow" not in sys.modules or keras is None:
        return "TensorFlow and Keras are not imported"
    if not isinstance(model, keras.Model) or not hasattr(model, "train_step"):
        return "it is not a model of Keras 3"
    if getattr(model, "optimizer", None) is None:
        return "it is not compiled"
    if not runs_on_host(model):
        return "it does not train on the CPU of this process"
    if model.run_eagerly:
        return "run_eagerly is on"
    if model.jit_compile is True:
        return "it is compiled with XLA (jit_compile)"
    return None


def _weights_of(model: Any, created: list[Any]) -> tuple[int, int]:
    """Bytes of the trainable weights, and of all weights that were created by the trace."""
    new = {id(one) for one in created}
    missing = [one for one in model.weights if id(getattr(one, "value", one)) in new]
    return sum(map(variable_bytes, model.trainable_weights)), sum(map(variable_bytes, missing))


def _layers_of(model: Any) -> set[str]:
    """Names of the layers. The cell of a recurrent layer is named by that layer."""
    found = list(model._flatten_layers())
    cells = {one.cell.name for one in found if getattr(one, "cell", None) is not None}
    return {one.name for one in found} - cells


def _specs_of(plan: FitPlan) -> Any:
    """Symbolic inputs of ``train_step``, with an unknown batch size."""
    x, y, weights = plan.x, plan.y, plan.sample_weight
    if plan.is_pipeline:
        return _spec(x.element_spec)
    if weights is None and plan.class_weight is not None:
        weights = sys.modules["tensorflow"].TensorSpec((None,), "float32")
    if y is None:  # Keras passes what is no tuple as it is
        return (_spec(x),) if isinstance(x, (list, tuple)) else _spec(x)
    parts = (x, y) if weights is None else (x, y, weights)
    return tuple(_spec(part) for part in parts)


def _spec(value: Any) -> Any:
    """The same structure with a ``tf.TensorSpec`` for each array."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {key: _spec(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_spec(one) for one in value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or not len(shape):
        raise CannotTrace(f"the shape of its data is not known ({type(value).__name__})")
    name = str(getattr(dtype, "name", dtype))
    if name == "object" or name.startswith("str"):  # Keras converts arrays of texts
        name = "string"
    if "float" in name and not hasattr(value, "is_compatible_with"):  # Keras converts arrays
        name = sys.modules["keras"].config.floatx()
    return sys.modules["tensorflow"].TensorSpec((None, *shape[1:]), name)


def _without_memory(options: Mapping[str, Any]) -> Any:
    """A variable with a handle but without a value: nothing is allocated."""
    tensorflow = sys.modules["tensorflow"]
    variables = sys.modules["tensorflow.python.ops.resource_variable_ops"]
    value = options["initial_value"]
    with tensorflow.Graph().as_default():
        value = tensorflow.convert_to_tensor(value() if callable(value) else value)
    known = {name: options.get(name) for name in ("trainable", "name", "aggregation")}
    return variables.UninitializedVariable(
        shape=value.shape, dtype=options.get("dtype") or value.dtype, **known
    )


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
