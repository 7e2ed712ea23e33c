"""Keeps failures of tfguard out of the user's cell, and notes each once. Exceptions of the user's signal handlers pass.

Failures are written to ``problems.jsonl`` in the data folder (bounded), which ``jupyter tfguard doctor`` and the panel
read.
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
# Redacted before it is truncated: a truncated key no longer matches a pattern.
_READ_LIMIT = 20_000

# Failures noted in this process: message by place and kind of failure.
_noted: dict[tuple[str, str], str] = {}
# Entries that could not be written: on a full disk, the page shows them from here.
_unwritten: list[dict[str, Any]] = []
_silent = False


def note_problem(place: str, error: BaseException | str, *, fix: str | None = None) -> None:
    """Note a failure of tfguard, once per place and text in this process. Never raises.

    Args:
        place: The failed activity, as text for users: ``"kernel start"``.
        error: The exception, or a sentence.
        fix: What the user can do, if anything.
    """
    if _silent:
        return
    text = error if isinstance(error, str) else f"{type(error).__name__}: {_text_of(error)}"
    text = text[:_READ_LIMIT]
    # System errors with different file names are the same failure.
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
    try:
        _append(entry)
    except Exception:
        _unwritten.append(entry)


def fall_silent() -> None:
    """Stop noting failures. For forked children: an import started by another thread may never release its lock."""
    global _silent
    _silent = True


def noted_in_this_process() -> list[str]:
    """The failures noted in this process, oldest first, including those that could not be written to the file."""
    return list(_noted.values())


def _text_of(error: BaseException) -> str:
    """The text of the exception. An exception class of the user may fail in ``__str__``."""
    try:
        return str(error)
    except Exception:
        return "(no text)"


def _append(entry: dict[str, Any]) -> None:
    # Imported only after a failure, because building its patterns takes some milliseconds.
    from .redact import clean

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
    """The failures noted recently, oldest first; those that could not be written only of this process."""
    found = []
    for line in _content().splitlines():
        try:
            entry = json.loads(line)
            entry["time"] = float(entry.get("time", 0))
            # A time in the far future would never expire.
            young = -_CLOCK_MARGIN_SECONDS < time.time() - entry["time"] < newest_seconds
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            continue  # a line truncated by the limit or by a kill, or not written by tfguard
        if young:
            found.append(entry)
    return found + [e for e in _unwritten if time.time() - e["time"] < newest_seconds]


def _content() -> bytes:
    """The end of the file, at most twice its limit."""
    try:
        folder = PrivateFolder(data_folder(), make=False)
    except FolderUnusable:
        return b""
    return folder.read(PROBLEMS_FILE, 2 * PROBLEMS_LIMIT_BYTES) or b""


def is_users(error: BaseException) -> bool:
    """True if a signal handler of the user raised this: Python runs handlers between any two lines, also of tfguard.

    A handler that has unregistered itself meanwhile is not recognised.
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
    """Suppress and note exceptions of tfguard in the block."""
    try:
        yield
    except Exception as error:
        if is_users(error):
            raise
        note_problem(place, error)


@contextlib.contextmanager
def part(name: str, problems: list[str]) -> Iterator[None]:
    """Start one part of the guard; if it fails, the other parts still start.

    Args:
        name: Name of the part for users.
        problems: A sentence is appended if the part fails.
    """
    try:
        yield
    except SourceUnavailable as absent:
        problems.append(str(absent))  # not available on this system; not a failure of tfguard
    except Exception as error:
        note_problem(f"kernel start: {name}", error)
        problems.append(str(error) if isinstance(error, TfGuardError) else f"{name}: {error}")


def shield(place: str) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Decorate a function called by IPython, Keras or Jupyter: return None instead of raising an error of tfguard."""

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
