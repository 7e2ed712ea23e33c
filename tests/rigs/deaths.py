"""Ways in which a process that carries the recorder dies, each just after it wrote its last native words.

Real ones, of the system's C and C++ libraries where they have them. Linux only; nothing here returns.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import resource
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Through PyDLL the GIL is held while native code runs, as in most extension modules.
_HOLDING: Any = ctypes.PyDLL(None) if sys.platform == "linux" else None
_LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None


def write_natively(text: bytes) -> None:
    """To fd 2, the GIL held."""
    _HOLDING.write(2, text, len(text))


@dataclass(frozen=True)
class Kind:
    """One way to die.

    Attributes:
        die: Dies.
        signal: That ends the process; None for an exit.
        code: Exit code, where no signal does.
        says: Regular expression of what the C library itself writes to fd 2 on the way.
        fault: What faulthandler calls it; None where it leaves no text.
        stack: Name of the function that must stand in that text.
        stopped: Name of the terminating signal that must have left a stack of its own.
    """

    name: str
    die: Callable[[], None]
    signal: int | None = None
    code: int | None = None
    says: str = ""
    fault: str | None = None
    stack: str = ""
    stopped: str | None = None


def _die_of_abort() -> None:
    _LIBC.abort()


def _die_of_abort_holding() -> None:
    _HOLDING.abort()


def _die_of_a_fatal_line() -> None:
    write_natively(
        b"2026-11-21 02:14:07.123456: F tensorflow/core/framework/tensor_shape.cc:607] "
        b"Non-OK-status: RecomputeNumElements() status: INVALID_ARGUMENT\n"
    )
    _HOLDING.abort()


def _die_of_a_double_free() -> None:
    _HOLDING.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(_HOLDING.malloc(48))
    _HOLDING.free(block)
    _HOLDING.free(block)


def _die_of_a_null_pointer() -> None:
    ctypes.string_at(0)


def _fall_deeper(callback: Any) -> None:
    callback(callback)


def _die_of_a_stack_overflow() -> None:
    resource.setrlimit(
        resource.RLIMIT_STACK, (2 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1])
    )
    sys.setrecursionlimit(1_000_000)
    kind = ctypes.PYFUNCTYPE(None, ctypes.py_object)
    callback = kind(_fall_deeper)
    callback(callback)


def _die_of_a_kill() -> None:
    write_natively(b"and not a word more\n")
    _HOLDING.kill(os.getpid(), signal.SIGKILL)


def _die_of_an_exit() -> None:
    _HOLDING._exit(3)


def _die_of_a_termination() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()


def _die_in_a_thread() -> None:
    thread = threading.Thread(target=_die_of_abort)
    thread.start()
    thread.join()


def _aborted(name: str, die: Callable[[], None], says: str = "", stack: str = "") -> Kind:
    return Kind(name, die, signal.SIGABRT, None, says, "Aborted", stack or die.__name__)


def _segmentation_fault(name: str, die: Callable[[], None], stack: str) -> Kind:
    return Kind(name, die, signal.SIGSEGV, None, "", "Segmentation fault", stack)


def kinds() -> list[Kind]:
    """The ways to die that differ in who writes last, and in what a signal handler of faulthandler can do."""
    found = [
        _aborted("abort", _die_of_abort),
        _aborted("abort, GIL held", _die_of_abort_holding),
        _aborted("abort in a thread", _die_in_a_thread, stack="_die_of_abort"),
        _aborted(
            "fatal line",
            _die_of_a_fatal_line,
            r"2026-11-21 02:14:07\.123456: F tensorflow/core/framework/tensor_shape\.cc:607\] "
            r"Non-OK-status: RecomputeNumElements\(\) status: INVALID_ARGUMENT\n",
        ),
        _segmentation_fault("null pointer", _die_of_a_null_pointer, "string_at"),
        _segmentation_fault("stack overflow", _die_of_a_stack_overflow, "_fall_deeper"),
        Kind("kill", _die_of_a_kill, signal.SIGKILL, says="and not a word more\n"),
        Kind("exit", _die_of_an_exit, code=3),
        Kind(
            "termination",
            _die_of_a_termination,
            signal.SIGTERM,
            stack="_die_of_a_termination",
            stopped="SIGTERM",
        ),
    ]
    if platform.libc_ver()[0] == "glibc":
        found.append(
            _aborted("double free", _die_of_a_double_free, r"free\(\): double free [^\n]*\n")
        )
    return found
