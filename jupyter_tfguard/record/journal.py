"""Events on disk: one JSON line each, in two files that take turns, so that the disk used is bounded.

A line: ``{"n": sequence, "t": Unix seconds, "m": monotonic seconds, "kind": "...", ...fields}``. A line that a kill cut
short is skipped by the reader; order is by sequence, because clocks jump.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

FILE_LIMIT_BYTES = 256 * 1024
LINE_LIMIT_BYTES = 4096
NAMES = ("journal.0.jsonl", "journal.1.jsonl")

Event = dict[str, Any]


class JournalWriter:
    """Appends events.

    Args:
        create: Makes an empty file of the given name, open for appending, and returns its descriptor.
    """

    def __init__(self, create: Callable[[str], int]) -> None:
        self._create = create
        self._turn = 0
        self._descriptor = create(NAMES[0])
        self._size = 0
        self._sequence = itertools.count(1)
        # Re-entrant: a signal handler of the user's may run a cell hook inside a write.
        self._lock = threading.RLock()

    def write(self, kind: str, **fields: Any) -> None:
        """Append one event. A field that makes the line too long is cut.

        Raises:
            OSError: The system refused the write.
        """
        with self._lock:
            head = {"n": next(self._sequence), "t": time.time(), "m": time.monotonic()}
            line = _line(head | {"kind": kind} | fields)
            if self._size + len(line) > FILE_LIMIT_BYTES:
                self._take_turns()
            os.write(self._descriptor, line)
            self._size += len(line)

    def _take_turns(self) -> None:
        fresh = self._create(NAMES[1 - self._turn])
        os.close(self._descriptor)
        self._descriptor, self._turn, self._size = fresh, 1 - self._turn, 0

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


def _line(event: Event) -> bytes:
    line = json.dumps(event, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
    if len(line) >= LINE_LIMIT_BYTES:
        cut = {k: v[:200] if isinstance(v, str) else v for k, v in event.items()}
        line = json.dumps(cut, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
    if len(line) >= LINE_LIMIT_BYTES:
        kept = {k: event[k] for k in ("n", "t", "m", "kind")} | {"cut": True}
        line = json.dumps(kept).encode()
    return line + b"\n"


def read_journal(contents: list[bytes]) -> list[Event]:
    """The events of the journal's files, in order; damaged lines are left out.

    Args:
        contents: The bytes of both files, in any order.
    """
    found: list[Event] = []
    for content in contents:
        for line in content.splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if (
                isinstance(event, dict)
                and isinstance(event.get("n"), int)
                and isinstance(event.get("t"), (int, float))
                and isinstance(event.get("kind"), str)
            ):
                found.append(event)
    return sorted(found, key=lambda event: event["n"])
