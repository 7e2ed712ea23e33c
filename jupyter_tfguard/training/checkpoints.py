"""The last file that ModelCheckpoint or BackupAndRestore wrote: found by looking at the file, not by changing them."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# TensorFlow's own format writes several files beside each other, of which this one comes last.
_TENSORFLOW_INDEX = ".index"
_ENTRIES_LIMIT = 5000


@dataclass(frozen=True)
class _Place:
    """Where a callback writes, and what."""

    folder: str
    name: re.Pattern[str]
    by: str
    weights_only: bool | None


class CheckpointWatch:
    """Looks for files newer than the last look.

    Args:
        callbacks: The user's Keras callbacks; all but the two kinds are ignored.
        since: Unix seconds; older files are from an earlier run.
    """

    def __init__(self, callbacks: Iterable[Any], since: float) -> None:
        places = [place for one in callbacks if (place := _place_of(one)) is not None]
        self._newest = [(place, since) for place in places]

    def look(self) -> list[dict[str, Any]]:
        """Per callback the newest checkpoint that was not there at the last look.

        Returns:
            Each as ``{"path", "written", "by", "weights_only"}``: of the file or folder; Unix seconds; the kind of
            callback; whether it holds the weights and no model, None where that is not known.
        """
        found = []
        for index, (place, since) in enumerate(self._newest):
            written, path = max(_matching(place), default=(0.0, ""))
            if written > since:
                self._newest[index] = (place, written)
                kind = {"by": place.by, "weights_only": place.weights_only}
                found.append({"path": path, "written": written} | kind)
        return found


def _place_of(callback: Any) -> _Place | None:
    """Folder and name pattern of what this callback writes; None for other callbacks, and where nobody can look."""
    kinds = [kind.__name__ for kind in type(callback).__mro__]
    if "ModelCheckpoint" in kinds:
        path = os.fspath(callback.filepath)
        folder, name = os.path.split(path.rstrip("/"))
        weights_only = getattr(callback, "save_weights_only", None)
        told = weights_only if isinstance(weights_only, bool) else None
        return _checked(_Place(folder, _template(name), "ModelCheckpoint", told))
    if "BackupAndRestore" in kinds:
        # Keras 3 writes latest.weights.h5 there, Keras 2 a chief/ckpt-N.index below
        folder = os.fspath(callback.backup_dir)
        name_pattern = re.compile(r".*\.weights\.h5|chief")
        return _checked(_Place(folder, name_pattern, "BackupAndRestore", True))
    return None


def _checked(place: _Place) -> _Place | None:
    # gs://, hdfs:// and placeholders in the folder are not looked for.
    return None if "://" in place.folder or "{" in place.folder else place


def _template(name: str) -> re.Pattern[str]:
    """``model-{epoch:02d}-{val_loss:.2f}.keras`` with anything in the place of the braces."""
    fixed = re.split(r"\{[^{}]*\}", name)
    return re.compile(".*".join(map(re.escape, fixed)) + rf"({re.escape(_TENSORFLOW_INDEX)})?")


def _matching(place: _Place) -> list[tuple[float, str]]:
    """When each checkpoint was written, and its path."""
    found = []
    # The folder may not be made yet, and the user's code may take old files away meanwhile.
    with contextlib.suppress(OSError), os.scandir(place.folder or os.curdir) as entries:
        for entry in itertools.islice(entries, _ENTRIES_LIMIT):
            if place.name.fullmatch(entry.name):
                path = os.path.abspath(entry.path).removesuffix(_TENSORFLOW_INDEX)
                with contextlib.suppress(OSError):
                    found.append((entry.stat().st_mtime, path))
    return found
