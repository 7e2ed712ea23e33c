"""Reports that could not be saved: kept in memory, and listed and shown as saved ones, until the disk takes them."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FolderUnusable
from .alive import claim, recording_name
from .bundle import ANNOUNCED, READ, BundleStore, files_of
from .identity import ProcessIdentity
from .recording import remove_recording

KEPT_LIMIT = 10

_FREE_SPACE = (
    "Free some disk space, or set TFGUARD_DIR to a folder of your own on a disk with free space."
)
_OTHER_FOLDER = "Set TFGUARD_DIR to a folder of your own on a disk that this server can write to."
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class _Kept:
    files: dict[str, bytes]
    bad: OSError | FolderUnusable
    recordings: tuple[Path, ...] = ()  # removed with the report, or once it is saved


class BackedStore(BundleStore):
    """All reports of this user, and in memory the newest `KEPT_LIMIT` that this process could not save. Thread-safe."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def save(self, bundle: dict[str, Any], report: dict[str, Any], entry: dict[str, Any]) -> None:
        """Write a bundle with its report, or keep both in memory.

        Raises:
            FolderUnusable, OSError: Could not write it, and `KEPT_LIMIT` newer ones are in memory.
        """
        files = files_of(bundle, report, entry)
        try:
            self._write(bundle["id"], files)
        except (OSError, FolderUnusable) as bad:
            with self._lock:
                kept = self._kept | {bundle["id"]: _Kept(files, bad)}
                self._kept = {name: kept[name] for name in sorted(kept)[-KEPT_LIMIT:]}
                if bundle["id"] not in self._kept:
                    raise

    def unsaved_sentence(self, report_id: str) -> str | None:
        """Why this report could not be saved, and what to do; None for a saved report."""
        kept = self._kept.get(report_id)
        return None if kept is None else self._sentence(kept.bad)

    def unsaved(self) -> list[OSError | FolderUnusable]:
        """Why reports could not be saved: one error for each that is in memory, the newest report first."""
        with self._lock:
            return [self._kept[name].bad for name in sorted(self._kept, reverse=True)]

    def made_from(self, report_id: str, recordings: Iterable[Path]) -> None:
        """Note the recordings of an unsaved report, to remove them together with it or once it is saved."""
        with self._lock:
            if (kept := self._kept.get(report_id)) is not None:
                kept.recordings = tuple(recordings)

    def is_made_from(self, identity: ProcessIdentity) -> bool:
        """True if an unsaved report was made from the recording of this process."""
        with self._lock:
            paths = [path for kept in self._kept.values() for path in kept.recordings]
        return any(recording_name(path) == identity.folder_name for path in paths)

    def save_kept(self) -> bool:
        """Try again to save what is in memory; True if a report was saved."""
        saved = False
        for report_id in sorted(self._kept):
            kept = self._kept.get(report_id)
            if kept is None:
                continue
            try:
                self._write(report_id, kept.files)
            except (OSError, FolderUnusable) as bad:
                kept.bad = bad
                continue
            _remove(kept.recordings)
            with self._lock:
                self._kept.pop(report_id, None)
            saved = True
        return saved

    def ids(self) -> list[str]:
        """Ids of all bundles, newest first."""
        return sorted({*super().ids(), *tuple(self._kept)}, reverse=True)

    def entry(self, report_id: str) -> dict[str, Any]:
        """One entry of the list. Raises like :meth:`bundle`."""
        return self._with_reason(report_id, super().entry(report_id))

    def report(self, report_id: str) -> dict[str, Any]:
        """The report as the panel reads it. Raises like :meth:`bundle`."""
        return self._with_reason(report_id, super().report(report_id))

    def _with_reason(self, report_id: str, value: dict[str, Any]) -> dict[str, Any]:
        why = self.unsaved_sentence(report_id)
        return value if why is None else value | {"unsaved": why}

    def _sentence(self, bad: OSError | FolderUnusable) -> str:
        why = f"The report could not be saved in {self.root}: {reason_of(bad)}"
        fix = fix_of(bad)
        return f"{why}{f' {fix}' if fix else ''} tfguard saves it as soon as it can."

    def mark(self, report_id: str, name: str) -> None:
        """Write the mark `READ` or `ANNOUNCED`. Raises like :meth:`bundle`, and OSError."""
        kept = self._kept.get(report_id)
        if kept is None:
            super().mark(report_id, name)
        elif name in (READ, ANNOUNCED):
            kept.files[name] = b""

    def remove(self, report_id: str) -> bool:
        """Delete a report and all its files. Raises and returns as the store without memory."""
        with self._lock:
            kept = self._kept.pop(report_id, None)
        if kept is None:
            return super().remove(report_id)
        _remove(kept.recordings)
        return True

    def _has(self, report_id: str, name: str) -> bool:
        kept = self._kept.get(report_id)
        return super()._has(report_id, name) if kept is None else name in kept.files

    def _content(self, report_id: str, name: str) -> bytes | None:
        kept = self._kept.get(report_id)
        return super()._content(report_id, name) if kept is None else kept.files.get(name)


def _remove(recordings: Iterable[Path]) -> None:
    for path in recordings:
        # None: gone, or another process makes a report from it, which has the same id.
        if (claimed := claim(path)) is not None:
            remove_recording(claimed)


def reason_of(bad: OSError | FolderUnusable) -> str:
    """``No space left on device.``: why something could not be saved, as a sentence."""
    cause = _cause(bad)
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return text[:1].upper() + text[1:].rstrip(".") + "."


def fix_of(bad: Exception) -> str | None:
    """What the user can do about a failed write; None if unknown, or if the error says it."""
    cause = _cause(bad)
    if not isinstance(cause, OSError):
        return None
    return _FREE_SPACE if cause.errno in _FULL else _OTHER_FOLDER


def _cause(bad: Exception) -> BaseException:
    return bad.__cause__ if isinstance(bad, FolderUnusable) and bad.__cause__ else bad
