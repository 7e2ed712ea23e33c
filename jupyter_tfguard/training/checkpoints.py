"""Finds the last file that ModelCheckpoint or BackupAndRestore wrote, in the file system and without changing Keras."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..record.events import CheckpointWritten

# TensorFlow's format consists of several files; this one is written last.
_TENSORFLOW_INDEX = ".index"
_ENTRIES_LIMIT = 5000


@dataclass(frozen=True)
class _Place:
    """Where a callback writes, and under which names."""

    folder: str
    name: re.Pattern[str]
    by: str
    weights_only: bool | None


class CheckpointWatch:
    """Finds checkpoint files that are newer than the last call.

    Args:
        callbacks: The user's Keras callbacks; all but the two classes are ignored.
        since: Unix seconds; older files are from an earlier run.
    """

    def __init__(self, callbacks: Iterable[Any], since: float) -> None:
        places = [place for one in callbacks if (place := _place_of(one)) is not None]
        self._newest = [(place, since) for place in places]

    def poll(self) -> list[CheckpointWritten]:
        """The newest checkpoint of each callback that was written since the last call."""
        found = []
        for index, (place, since) in enumerate(self._newest):
            written, path = max(_matching(place), default=(0.0, ""))
            if written > since:
                self._newest[index] = (place, written)
                only = place.weights_only
                found.append(
                    CheckpointWritten(path=path, written=written, by=place.by, weights_only=only)
                )
        return found


def _place_of(callback: Any) -> _Place | None:
    """Folder and name pattern of this callback's files; None for other callbacks and unlistable folders."""
    kinds = [kind.__name__ for kind in type(callback).__mro__]
    if "ModelCheckpoint" in kinds:
        path = os.fspath(callback.filepath)
        folder, name = os.path.split(path.rstrip("/"))
        weights_only = getattr(callback, "save_weights_only", None)
        known = weights_only if isinstance(weights_only, bool) else None
        return _checked(_Place(folder, _template(name), "ModelCheckpoint", known))
    if "BackupAndRestore" in kinds:
        # Keras 3 writes latest.weights.h5 there, Keras 2 a chief/ckpt-N.index below
        folder = os.fspath(callback.backup_dir)
        name_pattern = re.compile(r".*\.weights\.h5|chief")
        return _checked(_Place(folder, name_pattern, "BackupAndRestore", True))
    return None


def _checked(place: _Place) -> _Place | None:
    # gs://, hdfs:// and folders with placeholders are not searched.
    return None if "://" in place.folder or "{" in place.folder else place


def _template(name: str) -> re.Pattern[str]:
    """``model-{epoch:02d}-{val_loss:.2f}.keras`` as a pattern that allows any text for the braces."""
    fixed = re.split(r"\{[^{}]*\}", name)
    return re.compile(".*".join(map(re.escape, fixed)) + rf"({re.escape(_TENSORFLOW_INDEX)})?")


def _matching(place: _Place) -> list[tuple[float, str]]:
    """(time written, path) of each checkpoint."""
    found = []
    # The folder may not exist yet, and user code may delete old files during the scan.
    with contextlib.suppress(OSError), os.scandir(place.folder or os.curdir) as entries:
        for entry in itertools.islice(entries, _ENTRIES_LIMIT):
            if place.name.fullmatch(entry.name):
                path = os.path.abspath(entry.path).removesuffix(_TENSORFLOW_INDEX)
                with contextlib.suppress(OSError):
                    found.append((entry.stat().st_mtime, path))
    return found
