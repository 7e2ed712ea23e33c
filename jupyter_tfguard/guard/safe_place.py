"""Where in a program the guard may raise its exception.

A signal handler runs between any two lines of Python. In some places an exception does harm: an import would leave half a
module, a context manager of TensorFlow its per-thread state, ``__del__`` would swallow it, where TensorFlow turns a status
into an error pybind11 would make a RuntimeError of it, and pandas frees what its reading threads still use. There the guard
waits until the code has left the place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

_NEAR = 8  # frames from the innermost on
_NAMES = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__", "__del__"})
_FILES = (
    "weakref.py",  # called from C code that drops the exception
    "abc.py",
    "tensorflow/python/eager/core.py",  # error translation
    "tensorflow/python/framework/errors_impl.py",
)
_IMPORTS = "<frozen importlib"
# pandas 3.1: threads read parts of a file. They are stopped by an exception of their own, which then comes here.
_PARALLEL_READ = ("_read_csv_chunks", "pandas/io/parsers/readers.py")
_GENERATOR = 0x20  # inspect.CO_GENERATOR
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_AROUND_FIT = "run_and_record"  # ours, but it only calls: nothing is half done while Keras runs


def in_cell(frame: FrameType | None, namespace: Mapping[str, Any]) -> bool:
    """True when code of a cell is on the stack; `namespace`: the user's."""
    return any(one.f_globals is namespace for one in _stack(frame))


def is_safe(frame: FrameType | None, *, in_imports: bool = False) -> bool:
    """True when an exception does no harm here.

    Args:
        frame: The innermost.
        in_imports: Whether an import may be interrupted.
    """
    for place, one in enumerate(_stack(frame)):
        code = one.f_code
        file = code.co_filename
        if not in_imports and file.startswith(_IMPORTS):
            return False
        if code.co_name == _PARALLEL_READ[0] and file.endswith(_PARALLEL_READ[1]):
            return False
        if place < _NEAR:
            if code.co_name in _NAMES or file.endswith(_FILES):
                return False
            if file.startswith(_PACKAGE) and code.co_name != _AROUND_FIT:
                return False
            if place == 0 and code.co_flags & _GENERATOR and "tensorflow" in file:
                return False  # the body of a context manager
    return True


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
