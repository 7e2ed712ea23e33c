"""What the user's code can reach and what may hold memory, each with the name that the user would write.

Covers the newest names of the notebook, one or two levels into the notebook's own objects and classes, closures, defaults and
caches of its functions, generators, and modules of the user. Objects of the running fit come in under a name of their own. Runs
no user code, see :mod:`~.measure`.
"""

from __future__ import annotations

import functools
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from queue import Queue
from types import FunctionType, GeneratorType, MethodType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from .arrays import Sizes, newest
from .measure import LRU_CACHE, attributes, container_base, local_variables

if TYPE_CHECKING:
    from ...training.progress import FitProgress

Places = Iterator[tuple[str, Any]]

_DEPTH = 2
_PLACES = 3000
_VISITS = 32  # between two looks at the clock, which is a system call
_ENTRIES = 32  # a larger container is not looked into
_ATTRIBUTES = 100
_NAME_LIMIT = 80
_PLAIN = (int, float, complex, type(None))
_TRACING_COUNT = "experimental_get_tracing_count"
# Their attributes are those of the library, and many.
_LIBRARIES = frozenset(
    [
        "tensorflow",
        "keras",
        "tf_keras",
        "numpy",
        "pandas",
        "torch",
        "jax",
        "matplotlib",
        "IPython",
        "ipykernel",
        "ipywidgets",
        "jupyter_tfguard",
    ]
)
_INSTALLED = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def places_of(
    namespace: dict[str, Any], objects: Iterable[tuple[str, Any]] = (), *, seconds: float = 0.05
) -> Places:
    """(name, value) of what may hold memory: containers, arrays, texts, caches and functions of TensorFlow.

    Args:
        namespace: The user's global names.
        objects: More objects to look into, with their names, such as the callbacks of the running fit.
        seconds: As for :class:`Walk`.
    """
    walk = Walk(seconds)
    for name, value in (*newest(namespace), *objects):
        yield from walk.into(name, value)


def fit_objects(fit: FitProgress | None) -> list[tuple[str, Any]]:
    """The user's objects that a running fit uses: callbacks, data, model."""
    if fit is None:
        return []
    found = (*fit.callbacks, *fit.data)
    return [
        (type(one).__name__, one)
        for one in found
        if type(one) is GeneratorType or is_users_class(type(one))
    ]


class Walk:
    """One look at everything; nothing is visited twice.

    Args:
        seconds: Limit of its CPU time, which does not depend on how busy the machine is.
    """

    def __init__(self, seconds: float) -> None:
        self.extend(seconds)
        self._visits = 0
        self._seen: set[int] = set()
        self._sizes = Sizes()
        self._left = _PLACES

    def extend(self, seconds: float) -> None:
        """Allow this much more CPU time from now on."""
        self._ends, self._is_over = time.thread_time() + seconds, False

    @property
    def is_over(self) -> bool:
        """True if the time or the number of places is used up."""
        self._visits += 1
        return self._is_over if self._visits % _VISITS else self.read_clock()

    def read_clock(self) -> bool:
        """The same, by the clock."""
        self._is_over |= self._left <= 0 or time.thread_time() > self._ends
        return self._is_over

    def into(self, name: str, value: Any, depth: int = 0) -> Places:
        """What a value is, and what it has inside."""
        if id(value) in self._seen or self.is_over:
            return
        kind = type(value)
        base = container_base(value)
        if base is not None or self._sizes.is_measured(value) or is_traced(kind):
            self._seen.add(id(value))
            self._left -= 1
            yield name[:_NAME_LIMIT], value
            if base in (list, dict) and depth < _DEPTH:
                yield from self._inside(name, value, base, depth + 1)
        elif depth <= _DEPTH and not issubclass(kind, _PLAIN):
            self._seen.add(id(value))
            yield from self._parts(name, value, kind, depth)

    def _parts(self, name: str, value: Any, kind: type, depth: int) -> Places:
        if issubclass(kind, ModuleType):
            if is_users(value.__dict__.get("__file__"), value.__dict__.get("__name__")):
                yield from self._named(f"{name}.", value.__dict__, depth + 1)
        elif issubclass(kind, type):
            if is_users_class(value):
                yield from self._of_class(value, depth)
        elif kind is FunctionType:
            yield from self._of_function(name, value, depth)
        elif kind is MethodType:
            yield from self.into(name, value.__self__, depth)
        elif kind is GeneratorType:
            yield from self.locals_of(value.gi_frame, depth)
        elif kind is LRU_CACHE:
            self._left -= 1
            yield name[:_NAME_LIMIT], value
        elif kind.__module__.partition(".")[0] not in _LIBRARIES:
            yield from self._of_instance(name, value, depth)

    def _of_instance(self, name: str, value: Any, depth: int) -> Places:
        if is_users_class(type(value)):
            yield from self._of_class(type(value), depth)
        elif depth and type(value) not in (SimpleNamespace, Queue):
            return  # of a library: only the notebook's own names are looked into
        yield from self._named(f"{name}.", attributes(value), depth + 1)

    def _of_class(self, kind: type, depth: int) -> Places:
        for one in type.__dict__["__mro__"].__get__(kind):
            if id(one) not in self._seen or one is kind:
                self._seen.add(id(one))
                if is_users_class(one):
                    found = type.__dict__["__dict__"].__get__(one)
                    yield from self._named(f"{one.__name__}.", found, depth + 1)

    def _of_function(self, name: str, value: FunctionType, depth: int) -> Places:
        if not is_users(value.__globals__.get("__file__"), value.__globals__.get("__name__")):
            return
        names = value.__code__.co_freevars
        for variable, cell in zip(names, value.__closure__ or (), strict=False):
            try:
                inner = cell.cell_contents
            except ValueError:
                continue  # not set yet
            yield from self.into(f"{variable} in {name}()", inner, depth + 1)
        given = value.__code__.co_varnames[: value.__code__.co_argcount]
        defaults = value.__defaults__ or ()
        pairs = [*zip(given[len(given) - len(defaults) :], defaults, strict=False)]
        for argument, default in (*pairs, *(value.__kwdefaults__ or {}).items()):
            yield from self.into(f"{argument} of {name}()", default, depth + 1)
        yield from self._named(f"{name}.", value.__dict__, depth + 1)

    def _named(self, prefix: str, values: Mapping[str, Any], depth: int) -> Places:
        try:
            pairs = list(values.items())[:_ATTRIBUTES]
        except RuntimeError:
            return  # another thread adds attributes
        for name, value in pairs:
            if isinstance(name, str) and not name.startswith("__"):
                yield from self.into(f"{prefix}{name}", value, depth)

    def _inside(self, name: str, value: Any, base: Any, depth: int) -> Places:
        """The containers and objects in a small container."""
        if base.__len__(value) > _ENTRIES:
            return
        try:
            pairs = list(dict.items(value) if base is dict else enumerate(list.__iter__(value)))
        except RuntimeError:
            return
        for key, entry in pairs:
            if type(key) in (int, str) and (
                container_base(entry) is not None or is_users_class(type(entry))
            ):
                yield from self.into(f"{name}[{key!r}]", entry, depth)

    def locals_of(self, frame: Any, depth: int = 0) -> Places:
        """The local variables of a function that runs, or of a generator that waits."""
        if frame is None:
            return
        function = frame.f_code.co_name
        for name, value in local_variables(frame).items():
            called = type(value).__name__ if name == "self" else f"{name} in {function}()"
            yield from self.into(called, value, depth)


def is_users_class(kind: type) -> bool:
    """True for a class that the notebook or a module of the user defines."""
    module = type.__dict__["__dict__"].__get__(kind).get("__module__")
    if not isinstance(module, str):
        return False
    if module in ("__main__", "builtins"):
        return module == "__main__"
    if module.partition(".")[0] in _LIBRARIES:
        return False
    found = sys.modules.get(module)
    return found is not None and is_users(getattr(found, "__file__", None), module)


@functools.cache
def is_users(file: str | None, name: str | None) -> bool:
    """True for the notebook, and for modules that are not installed."""
    if name == "__main__":
        return True
    if (
        not isinstance(file, str)
        or not isinstance(name, str)
        or name.partition(".")[0] in _LIBRARIES
    ):
        return False
    return not file.startswith(_INSTALLED) and "site-packages" not in file


def is_traced(kind: type) -> bool:
    """True for a function of TensorFlow, which keeps a graph for each kind of arguments."""
    return kind.__module__.startswith("tensorflow.") and hasattr(kind, _TRACING_COUNT)


def amount(value: Any, sizes: Sizes) -> int | None:
    """What grows: entries of a container or cache, bytes of an array or text, traces of a function of TensorFlow."""
    if (base := container_base(value)) is not None:
        return int(base.__len__(value))
    if type(value) is LRU_CACHE:
        return int(LRU_CACHE.cache_info(value).currsize)
    if is_traced(type(value)):
        return int(getattr(value, _TRACING_COUNT)())
    return sizes.of(value)
