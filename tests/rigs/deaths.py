"""Ways in which a process that carries the recorder dies, each just after it wrote its last native words.

Real ones, of the system's C and C++ libraries where they have them. Linux only; nothing here returns.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import os
import platform
import re
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Through PyDLL the GIL is held while native code runs, as in most extension modules.
_HOLDING: Any = ctypes.PyDLL(None) if sys.platform == "linux" else None
_LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None


def _program_name() -> str:
    """As the C library calls this program in its messages."""
    name = ctypes.c_char_p.in_dll(_LIBC, "program_invocation_short_name").value or b""
    return re.escape(name.decode())


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


def _die_of_an_invalid_pointer() -> None:
    _HOLDING.calloc.restype = ctypes.c_void_p
    _HOLDING.free(
        ctypes.c_void_p(_HOLDING.calloc(1, 48) + 8)
    )  # what lies before it is zeros: no size


def _die_of_an_assertion() -> None:
    _HOLDING.__assert_fail(b"rank < 8", b"shape.cc", 41, b"Reshape")


def _die_of_stack_smashing() -> None:
    _HOLDING.__stack_chk_fail()


def _die_of_terminate() -> None:
    ctypes.PyDLL("libstdc++.so.6")._ZSt9terminatev()


def _die_of_a_null_pointer() -> None:
    ctypes.string_at(0)


def _die_of_a_bus_error() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(2 * mmap.PAGESIZE)
        view = mmap.mmap(file.fileno(), 2 * mmap.PAGESIZE)
        file.truncate(0)
        view[mmap.PAGESIZE]


def _die_of_a_division() -> None:
    getattr(_HOLDING, "raise")(signal.SIGFPE)


def _die_of_an_instruction() -> None:
    getattr(_HOLDING, "raise")(signal.SIGILL)


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


def _die_of_a_time_limit() -> None:
    os.kill(os.getpid(), signal.SIGXCPU)
    signal.pause()


def _die_in_a_thread() -> None:
    thread = threading.Thread(target=_die_of_abort)
    thread.start()
    thread.join()


def _climb(depth: int) -> int:
    return 0 if depth == 0 else _climb(depth - 1)


def _die_beside_a_busy_thread() -> None:
    # Up and down over the border of a piece of the interpreter's stack, which is given back each time: faulthandler may
    # be reading it just then.
    threading.Thread(target=_die_of_abort).start()
    while True:
        for depth in (5, 200, 5, 199, 7, 210):
            list(map(_climb, [depth]))


def _killed_in_a_thread() -> None:
    thread = threading.Thread(target=_die_of_a_kill)
    thread.start()
    thread.join()


def _aborted(name: str, die: Callable[[], None], says: str = "", stack: str = "") -> Kind:
    return Kind(name, die, signal.SIGABRT, None, says, "Aborted", stack or die.__name__)


def _fatal(name: str, die: Callable[[], None], number: int, title: str, stack: str = "") -> Kind:
    return Kind(name, die, number, None, "", title, stack or die.__name__)


def kinds() -> list[Kind]:
    """All ways to die that this system has."""
    found = [
        _aborted("abort", _die_of_abort),
        _aborted("abort, GIL held", _die_of_abort_holding),
        _aborted("abort in a thread", _die_in_a_thread, stack="_die_of_abort"),
        _aborted("abort beside a busy thread", _die_beside_a_busy_thread, stack="_die_of_abort"),
        _aborted(
            "fatal line",
            _die_of_a_fatal_line,
            r"2026-11-21 02:14:07\.123456: F tensorflow/core/framework/tensor_shape\.cc:607\] "
            r"Non-OK-status: RecomputeNumElements\(\) status: INVALID_ARGUMENT\n",
        ),
        _fatal(
            "null pointer",
            _die_of_a_null_pointer,
            signal.SIGSEGV,
            "Segmentation fault",
            "string_at",
        ),
        _fatal(
            "stack overflow",
            _die_of_a_stack_overflow,
            signal.SIGSEGV,
            "Segmentation fault",
            "_fall_deeper",
        ),
        _fatal("bus error", _die_of_a_bus_error, signal.SIGBUS, "Bus error"),
        _fatal("division", _die_of_a_division, signal.SIGFPE, "Floating point exception"),
        _fatal("instruction", _die_of_an_instruction, signal.SIGILL, "Illegal instruction"),
        Kind("kill", _die_of_a_kill, signal.SIGKILL, says="and not a word more\n"),
        Kind("kill in a thread", _killed_in_a_thread, signal.SIGKILL, says="and not a word more\n"),
        Kind("exit", _die_of_an_exit, code=3),
        Kind(
            "termination",
            _die_of_a_termination,
            signal.SIGTERM,
            stack="_die_of_a_termination",
            stopped="SIGTERM",
        ),
        Kind(
            "time limit",
            _die_of_a_time_limit,
            signal.SIGXCPU,
            stack="_die_of_a_time_limit",
            stopped="SIGXCPU",
        ),
    ]
    if platform.libc_ver()[0] == "glibc":
        found += [
            _aborted("double free", _die_of_a_double_free, r"free\(\): double free [^\n]*\n"),
            _aborted(
                "invalid pointer",
                _die_of_an_invalid_pointer,
                r"(free|munmap_chunk)\(\): invalid pointer\n",
            ),
            _aborted(
                "assertion",
                _die_of_an_assertion,
                rf"{_program_name()}: shape\.cc:41: Reshape: Assertion `rank < 8' failed\.\n",
            ),
            _aborted(
                "stack smashing",
                _die_of_stack_smashing,
                r"\*\*\* stack smashing detected \*\*\*: [^\n]*\n",
            ),
        ]
    if ctypes.util.find_library("stdc++"):
        found.append(_aborted("terminate", _die_of_terminate, r"terminate called without [^\n]*\n"))
    return found
