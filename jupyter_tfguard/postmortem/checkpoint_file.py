"""State of the last checkpoint's file after the crash: unchanged since it was complete, written to again, or gone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..record.events import CheckpointWritten, Event
from ..threads import background_thread

# A crash is reported within a second; an unreachable file server would block the report.
_PATIENCE_SECONDS = 0.5
# TensorFlow's checkpoint format writes several files with a common prefix; this one is written last.
_SUFFIXES = ("", ".index")


def checkpoint_file(events: Sequence[Event]) -> dict[str, Any] | None:
    """When the file of the newest checkpoint was last written to.

    Args:
        events: The kernel's journal.

    Returns:
        ``modified``: Unix seconds, None when the file is missing. None when the journal records no checkpoint, or the disk
        does not answer.
    """
    path = next((e.path for e in reversed(events) if isinstance(e, CheckpointWritten)), None)
    if path is None or not os.path.isabs(path):
        return None
    found: list[dict[str, Any]] = []
    thread = background_thread(
        lambda: found.append({"modified": _modified(path)}), "tfguard-checkpoint"
    )
    try:
        thread.start()
    except RuntimeError:  # no more threads
        return None
    thread.join(_PATIENCE_SECONDS)
    return found[0] if found else None


def _modified(path: str) -> float | None:
    for suffix in _SUFFIXES:
        try:
            return os.stat(path + suffix).st_mtime
        except (OSError, ValueError):  # ValueError: a null character
            continue
    return None
