"""Keeps a failure of ours out of the user's cell, and writes it down once.

Failures go to ``problems.jsonl`` in the data folder (bounded), where ``jupyter tfguard doctor`` and the panel find them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from .places import data_folder

P = ParamSpec("P")
R = TypeVar("R")

PROBLEMS_FILE = "problems.jsonl"
PROBLEMS_LIMIT_BYTES = 64 * 1024
_TEXT_LIMIT = 600

_noted: set[tuple[str, str]] = set()


def note_problem(place: str, error: BaseException | str, *, fix: str | None = None) -> None:
    """Write a failure of ours down, once per place and text in this process. Never raises.

    Args:
        place: What was being done, for people: ``"kernel start"``.
        error: The exception, or a sentence.
        fix: What the user can do, if anything.
    """
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    text = text[:_TEXT_LIMIT]
    if (place, text) in _noted:
        return
    _noted.add((place, text))
    entry: dict[str, Any] = {"time": time.time(), "pid": os.getpid(), "place": place, "what": text}
    if fix:
        entry["fix"] = fix
    if isinstance(error, BaseException) and error.__traceback__ is not None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        entry["at"] = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    # Nothing is left to tell a failure of the very last resort to.
    with contextlib.suppress(Exception):
        _append(entry)


def _append(entry: dict[str, Any]) -> None:
    folder = data_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(folder / PROBLEMS_FILE, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if os.fstat(descriptor).st_size > PROBLEMS_LIMIT_BYTES:
            os.ftruncate(descriptor, 0)
        os.write(descriptor, (json.dumps(entry) + "\n").encode())
    finally:
        os.close(descriptor)


def read_problems(newest_seconds: float = 7 * 86400) -> list[dict[str, Any]]:
    """The failures written down lately, oldest first; empty when there are none or they cannot be read."""
    try:
        lines = (data_folder() / PROBLEMS_FILE).read_bytes()[-PROBLEMS_LIMIT_BYTES:].splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a line cut by the limit or by a kill
        if isinstance(entry, dict) and time.time() - float(entry.get("time", 0)) < newest_seconds:
            found.append(entry)
    return found


@contextlib.contextmanager
def shielded(place: str) -> Iterator[None]:
    """Let no Exception of the block out; write it down instead."""
    try:
        yield
    except Exception as error:
        note_problem(place, error)


def shield(place: str) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Decorate a function that IPython, Keras or Jupyter calls: it returns None instead of raising an Exception."""

    def decorate(function: Callable[P, R]) -> Callable[P, R | None]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                note_problem(place, error)
                return None

        return call

    return decorate
