"""Decides where in a program the guard may raise its exception.

A signal handler can run between any two Python instructions. In some places an exception does harm: an import would
leave a partial module; a context manager of TensorFlow would leave its per-thread state; ``__del__`` would swallow the
exception; where TensorFlow translates a status into an error, pybind11 would turn it into a RuntimeError; pandas would
free memory that its reading threads still use. Keras ignores any exception in some places. AutoGraph takes it as a sign
that a function cannot be converted, and never tries again. ``linecache`` answers a MemoryError by forgetting all sources,
those of the cells included, without which AutoGraph can convert none of the user's functions. The guard waits until the
code has left such a place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

_NEAR = 8  # innermost frames
_NAMES = frozenset(
    # The last two are of threading.Condition: its lock would not be held where it is released.
    {
        "__enter__",
        "__exit__",
        "__aenter__",
        "__aexit__",
        "__del__",
        "_release_save",
        "_acquire_restore",
    }
)
_FILES = (
    "weakref.py",  # called by C code that drops the exception
    "abc.py",
    "linecache.py",
    "logging/__init__.py",  # a handler prints an exception and goes on
    "tensorflow/python/eager/core.py",  # error translation
)
# TensorFlow's C++ code calls these (conversions, shapes, types), and not all of it expects an exception.
_CALLED_BY_TENSORFLOW = "tensorflow/python/framework/"
# What TensorFlow's operations call, native code calls, and it ignores an exception of an attribute, for example. Operations
# that call others and the user's functions in `tf.py_function` may be interrupted.
_OPERATIONS = "tensorflow/python/ops/gen_"
_MAY_INTERRUPT = (_OPERATIONS, "tensorflow/python/ops/script_ops.py")
_IMPORTS = "<frozen importlib"
# Functions that nothing on top of them may leave by our exception.
_WHOLE = {
    # pandas 3.1 reads parts of a file in threads. Each is stopped by its own exception, which then reaches this function.
    "_read_csv_chunks": "pandas/io/parsers/readers.py",
    # These, or their callers, ignore every exception.
    "pythonify_logs": "keras/src/utils/python_utils.py",
    "_maybe_warn_inputs_struct_mismatch": "keras/src/models/functional.py",
    "compute_output_spec": "keras/src/backend/tensorflow/core.py",
    # Turns every exception into a TypeError.
    "bind_function_inputs": "tensorflow/python/eager/polymorphic_function/function_type_utils.py",
}
# AutoGraph's function that converts a function and runs it, and the functions that it calls for the second.
_CONVERTS = "converted_call"
_RUNS_CONVERTED = ("tf__", "<lambda>", "_call_unconverted")
_RUNS_CELL = os.path.join("IPython", "core", "interactiveshell.py")
_RUNS_CALLBACK = os.path.join("asyncio", "events.py")
_GENERATOR = 0x20  # inspect.CO_GENERATOR
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Parts of tfguard that are safe: they only call Keras or a callback of the user.
_AROUND = ("run_and_record", "build_and_note", "run_watched_callback")


def in_cell(frame: FrameType | None, namespace: Mapping[str, Any]) -> bool:
    """True if code of a cell is on the stack. `namespace`: the user's globals."""
    return any(one.f_globals is namespace for one in _stack(frame))


def reaches_ipython(frame: FrameType | None) -> bool:
    """True if an exception that is raised here ends in IPython's function that runs a cell.

    False for a task or callback of an event loop: what reaches the loop may end the kernel.
    """
    for one in _stack(frame):
        code = one.f_code
        if code.co_name == "run_code" and code.co_filename.endswith(_RUNS_CELL):
            return True
        if code.co_name == "_run" and code.co_filename.endswith(_RUNS_CALLBACK):
            return False
    return False


def is_safe(frame: FrameType | None, *, in_imports: bool = False) -> bool:
    """True if an exception does no harm here.

    Args:
        frame: The innermost frame.
        in_imports: Whether an import may be interrupted.
    """
    if frame is None:
        return True
    if frame.f_lineno is None:
        return False  # TensorFlow and Keras fail when they copy a traceback that has no line
    if frame.f_code.co_flags & _GENERATOR and "tensorflow" in frame.f_code.co_filename:
        return False  # the body of a context manager
    called: CodeType | None = None
    for place, one in enumerate(_stack(frame)):
        code = one.f_code
        if not in_imports and code.co_filename.startswith(_IMPORTS):
            return False
        if _suffers_anywhere(code, called) or (place < _NEAR and _suffers_near(code)):
            return False
        called = code
    return True


def _suffers_anywhere(code: CodeType, called: CodeType | None) -> bool:
    """True if a running function must not be left by our exception. `called`: the function that it has called."""
    name, file = code.co_name, code.co_filename
    if name == _CONVERTS and (called is None or not called.co_name.startswith(_RUNS_CONVERTED)):
        return True
    if _OPERATIONS in file and called is not None:
        return not any(part in called.co_filename for part in _MAY_INTERRUPT)
    return name in _WHOLE and file.endswith(_WHOLE[name])


def _suffers_near(code: CodeType) -> bool:
    """The same for a function that has ended before long."""
    name, file = code.co_name, code.co_filename
    if file.startswith(_PACKAGE):
        return name not in _AROUND
    return name in _NAMES or file.endswith(_FILES) or _CALLED_BY_TENSORFLOW in file


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
