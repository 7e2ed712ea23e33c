"""The last checkpoint's file as it lies on the disk after the death: as it was seen whole, written to again, or gone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..threads import background_thread

# A death is told within a second; a file server that is gone would keep it for ever.
_PATIENCE_SECONDS = 0.5
# TensorFlow's own format writes several files beside each other, of which this one comes last.
_SUFFIXES = ("", ".index")


def checkpoint_file(events: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """When the file of the newest checkpoint was last written to.

    Args:
        events: Of the kernel's journal, as it wrote them.

    Returns:
        ``modified``: Unix seconds, None when no file is there. None when the journal tells of no checkpoint, or the disk
        does not answer.
    """
    path = next((e.get("path") for e in reversed(events) if e.get("kind") == "checkpoint"), None)
    if not isinstance(path, str) or not os.path.isabs(path):
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
