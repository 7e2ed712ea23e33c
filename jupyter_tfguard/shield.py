"""Keeps a failure of ours out of the user's cell, and writes it down once. What the user's own signal handler raises is his.

Failures go to ``problems.jsonl`` in the data folder (bounded), where ``jupyter tfguard doctor`` and the panel find them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, ParamSpec, TypeVar

from .errors import FolderUnusable, SourceUnavailable, TfGuardError
from .places import data_folder
from .private_files import PrivateFolder

P = ParamSpec("P")
R = TypeVar("R")

PROBLEMS_FILE = "problems.jsonl"
PROBLEMS_LIMIT_BYTES = 64 * 1024
_TEXT_LIMIT = 600
_CLOCK_MARGIN_SECONDS = 86400.0
# Looked through for secrets before it is cut: half a key has no form any more.
_READ_LIMIT = 20_000

# What was noted in this process: the sentence by place and kind of failure.
_noted: dict[tuple[str, str], str] = {}
_silent = False


def note_problem(place: str, error: BaseException | str, *, fix: str | None = None) -> None:
    """Write a failure of ours down, once per place and text in this process. Never raises.

    Args:
        place: What was being done, for people: ``"kernel start"``.
        error: The exception, or a sentence.
        fix: What the user can do, if anything.
    """
    if _silent:
        return
    text = error if isinstance(error, str) else f"{type(error).__name__}: {_told(error)}"
    text = text[:_READ_LIMIT]
    # The name of a file in a system error changes from one to the next; the failure is the same.
    kind = f"{type(error).__name__} {error.errno}" if isinstance(error, OSError) else text
    if (place, kind) in _noted:
        return
    _noted[place, kind] = f"{place}: {text}"
    entry: dict[str, Any] = {"time": time.time(), "pid": os.getpid(), "place": place, "what": text}
    if fix:
        entry["fix"] = fix
    if isinstance(error, BaseException) and error.__traceback__ is not None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        entry["at"] = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    # Nothing is left to tell a failure of the very last resort to.
    with contextlib.suppress(Exception):
        _append(entry)


def fall_silent() -> None:
    """Note nothing from here on: in a forked child another thread's import may be cut off half-way, and be waited for."""
    global _silent
    _silent = True


def noted_in_this_process() -> list[str]:
    """The failures noted here, oldest first; known also where they could not be written down."""
    return list(_noted.values())


def _told(error: BaseException) -> str:
    """The exception's own text; user code may have made one that has none to give."""
    try:
        return str(error)
    except Exception:
        return "(no text)"


def _append(entry: dict[str, Any]) -> None:
    from .redact import (
        clean,
    )  # its patterns take some milliseconds to build: only where something failed

    for name in ("place", "what", "fix"):
        if name in entry:
            entry[name] = clean(str(entry[name]))[:_TEXT_LIMIT]
    folder = PrivateFolder(data_folder())
    descriptor = folder.open(PROBLEMS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        if os.fstat(descriptor).st_size > PROBLEMS_LIMIT_BYTES:
            os.ftruncate(descriptor, 0)
        os.write(descriptor, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(descriptor)


def read_problems(newest_seconds: float = 7 * 86400) -> list[dict[str, Any]]:
    """The failures written down lately, oldest first; empty when there are none or they cannot be read."""
    found = []
    for line in _content().splitlines():
        try:
            entry = json.loads(line)
            entry["time"] = float(entry.get("time", 0))
            # A time in the far future would never grow old.
            young = -_CLOCK_MARGIN_SECONDS < time.time() - entry["time"] < newest_seconds
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            continue  # a line cut by the limit or by a kill, or not of ours
        if young:
            found.append(entry)
    return found


def _content() -> bytes:
    """The end of the file, at most twice its limit."""
    try:
        folder = PrivateFolder(data_folder(), make=False)
    except FolderUnusable:
        return b""
    return folder.read(PROBLEMS_FILE, 2 * PROBLEMS_LIMIT_BYTES) or b""


def is_users(error: BaseException) -> bool:
    """True when a signal handler of the user's raised this: Python runs it between two lines of any code, also of ours.

    A handler that has unset itself by now is not known any more.
    """
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return bool(handlers) and any(
        frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _code(handler: Any) -> CodeType | None:
    """The code of a function or a method."""
    code = getattr(getattr(handler, "__func__", handler), "__code__", None)
    return code if isinstance(code, CodeType) else None


@contextlib.contextmanager
def shielded(place: str) -> Iterator[None]:
    """Let no Exception of ours out of the block; write it down instead."""
    try:
        yield
    except Exception as error:
        if is_users(error):
            raise
        note_problem(place, error)


@contextlib.contextmanager
def part(name: str, problems: list[str]) -> Iterator[None]:
    """Begin one part of the guard; if it fails, the others begin all the same.

    Args:
        name: Of the part, for people.
        problems: Gets a sentence when it fails.
    """
    try:
        yield
    except SourceUnavailable as absent:
        problems.append(str(absent))  # this system does not have it; no failure of ours
    except Exception as error:
        note_problem(f"kernel start: {name}", error)
        problems.append(str(error) if isinstance(error, TfGuardError) else f"{name}: {error}")


def shield(place: str) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Decorate a function that IPython, Keras or Jupyter calls: it returns None instead of raising one of ours."""

    def decorate(function: Callable[P, R]) -> Callable[P, R | None]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if is_users(error):
                    raise
                note_problem(place, error)
                return None

        return call

    return decorate
