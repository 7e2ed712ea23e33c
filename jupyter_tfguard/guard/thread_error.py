"""Raises an exception in another thread."""

from __future__ import annotations

import contextlib
import ctypes
import threading


class _Reset(BaseException):
    """Raised and caught here."""


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread, as soon as it runs Python code again. Not for the calling thread.

    Before CPython 3.13 all threads share one flag for this, which stays set until any thread has raised such an exception. A
    thread that waits, or has ended meanwhile, never does, and in CPython 3.11 code under a profile or trace function does
    not go on while the flag is set. So an exception of the calling thread resets it; the other thread sets it again when it
    takes the interpreter lock. Source: Python/ceval.c and ceval_gil.h.

    Args:
        thread: Its id.
        error: None takes back what it has not raised yet.
    """
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error))
    with contextlib.suppress(_Reset):
        if set_error(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(_Reset)):
            while True:
                pass
