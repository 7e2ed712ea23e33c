"""The last file that ModelCheckpoint or BackupAndRestore wrote: found by looking at the file, not by changing them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# TensorFlow's own format writes several files beside each other, of which this one comes last.
_TENSORFLOW_INDEX = ".index"
_ENTRIES_LIMIT = 5000


@dataclass(frozen=True)
class Written:
    """A checkpoint on disk: its path, and when it was written (Unix seconds)."""

    path: str
    time: float


class CheckpointWatch:
    """Looks for files newer than the last look.

    Args:
        callbacks: The user's Keras callbacks; all but the two kinds are ignored.
        since: Unix seconds; older files are from an earlier run.
    """

    def __init__(self, callbacks: Iterable[Any], since: float) -> None:
        patterns = [pattern for pattern in map(_pattern_of, callbacks) if pattern is not None]
        self._newest = [(pattern, since) for pattern in patterns]

    def look(self, until: float = math.inf) -> list[Written]:
        """Per callback the newest checkpoint that was not there at the last look.

        Args:
            until: Unix seconds; a younger file is left for the next look, because it may be half written.
        """
        found = []
        for index, ((folder, name), since) in enumerate(self._newest):
            new = [w for w in _matching(folder, name) if since < w.time < until]
            if new:
                newest = max(new, key=lambda written: written.time)
                self._newest[index] = ((folder, name), newest.time)
                found.append(newest)
        return found


def _pattern_of(callback: Any) -> tuple[str, re.Pattern[str]] | None:
    """Folder and name pattern of what this callback writes."""
    kinds = [kind.__name__ for kind in type(callback).__mro__]
    if "ModelCheckpoint" in kinds:
        path = os.fspath(callback.filepath)
        folder, name = os.path.split(path.rstrip("/"))
        return _checked(folder, _template(name))
    if "BackupAndRestore" in kinds:
        # Keras 3 writes latest.weights.h5 there, Keras 2 a chief/ckpt-N.index below
        folder = os.fspath(callback.backup_dir)
        return _checked(folder, re.compile(r".*\.weights\.h5|chief"))
    return None


def _checked(folder: str, name: re.Pattern[str]) -> tuple[str, re.Pattern[str]] | None:
    # gs://, hdfs:// and placeholders in the folder are not looked for.
    return None if "://" in folder or "{" in folder else (folder or os.curdir, name)


def _template(name: str) -> re.Pattern[str]:
    """``model-{epoch:02d}-{val_loss:.2f}.keras`` with anything in the place of the braces."""
    fixed = re.split(r"\{[^{}]*\}", name)
    return re.compile(".*".join(map(re.escape, fixed)) + rf"({re.escape(_TENSORFLOW_INDEX)})?")


def _matching(folder: str, name: re.Pattern[str]) -> list[Written]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for _, entry in zip(range(_ENTRIES_LIMIT), entries, strict=False):
                if name.fullmatch(entry.name):
                    path = os.path.abspath(entry.path).removesuffix(_TENSORFLOW_INDEX)
                    found.append(Written(path, entry.stat().st_mtime))
    except OSError:
        return []  # not made yet, or gone
    return found
