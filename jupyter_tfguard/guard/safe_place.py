"""Decides where in a program the guard may raise its exception.

A signal handler can run between any two Python instructions. In some places an exception does harm: an import would
leave a partial module; a context manager of TensorFlow would leave its per-thread state; ``__del__`` would swallow the
exception; where TensorFlow translates a status into an error, pybind11 would turn it into a RuntimeError; and pandas
would free memory that its reading threads still use. The guard waits until the code has left such a place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

_NEAR = 8  # innermost frames
_NAMES = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__", "__del__"})
_FILES = (
    "weakref.py",  # called by C code that drops the exception
    "abc.py",
    "tensorflow/python/eager/core.py",  # error translation
)
# TensorFlow's C++ code calls these (conversions, shapes, types), and not all of it expects an exception.
_CALLED_BY_TENSORFLOW = "tensorflow/python/framework/"
_IMPORTS = "<frozen importlib"
# pandas 3.1 reads parts of a file in threads. Each is stopped by its own exception, which then reaches this function.
_PARALLEL_READ = ("_read_csv_chunks", "pandas/io/parsers/readers.py")
_GENERATOR = 0x20  # inspect.CO_GENERATOR
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_AROUND_FIT = "run_and_record"  # part of tfguard, but safe: it only calls Keras


def in_cell(frame: FrameType | None, namespace: Mapping[str, Any]) -> bool:
    """True if code of a cell is on the stack. `namespace`: the user's globals."""
    return any(one.f_globals is namespace for one in _stack(frame))


def is_safe(frame: FrameType | None, *, in_imports: bool = False) -> bool:
    """True if an exception does no harm here.

    Args:
        frame: The innermost frame.
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
            if code.co_name in _NAMES or file.endswith(_FILES) or _CALLED_BY_TENSORFLOW in file:
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
