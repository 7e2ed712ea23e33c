"""The bundle: the folder of one death, with everything a diagnosis may look at, written once and renamed into place.

=================  ==========================================================================================
``bundle.json``    what is known: ``{"format", "id", "identity", "server", "kernel", "system_log"}``
``report.json``    what was concluded, as the panel reads it
``entry.json``     its line in the list
``read``           empty; present once a person has seen the report
``announced``      empty; present once the next kernel has printed its two lines
=================  ==========================================================================================

``server`` is :class:`~.facts.ServerFacts` (None: no watcher saw the death), ``kernel`` is what the recording claimed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import time
from pathlib import Path
from typing import Any

from ..errors import BundleNotFound, FolderUnusable, RecordTooNew, RecordUnreadable
from .folders import PrivateFolder

FORMAT = (1, 0)
BUNDLE = "bundle.json"
REPORT = "report.json"
ENTRY = "entry.json"
READ = "read"
ANNOUNCED = "announced"
_LIMIT_BYTES = 8 * 1024 * 1024
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{1,10}-[0-9a-f]{4,8}")


def new_bundle_id(pid: int, died: float) -> str:
    """An id that sorts by time and names the process: ``20261121-021407-4711-3fa9``."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(died))
    return f"{stamp}-{pid}-{secrets.token_hex(2)}"


class BundleStore:
    """All bundles of this user. Reading never makes a folder; a damaged bundle is left out of lists."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, bundle: dict[str, Any], report: dict[str, Any], entry: dict[str, Any]) -> None:
        """Write a bundle with its report; it appears whole or not at all.

        Raises:
            FolderUnusable: The folder cannot be made or is not ours.
            OSError: The system refused (full disk).
        """
        with PrivateFolder(self.root):
            pass
        bundle_id = _checked(bundle["id"])
        temporary = self.root / f".{bundle_id}.{os.getpid()}"
        try:
            with PrivateFolder(temporary) as folder:
                folder.write_whole(BUNDLE, json.dumps(bundle, default=str).encode())
                # Browsers read these two: their JSON has no NaN.
                for name, value in ((REPORT, report), (ENTRY, entry)):
                    folder.write_whole(name, json.dumps(value, allow_nan=False).encode())
            os.rename(temporary, self.root / bundle_id)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def ids(self) -> list[str]:
        """Ids of all bundles, newest first."""
        try:
            names = os.listdir(self.root)
        except OSError:
            return []
        return sorted((name for name in names if _ID.fullmatch(name)), reverse=True)

    def entries(self) -> list[dict[str, Any]]:
        """The list's lines, newest death first, each with ``unread`` and ``announced``."""
        found = []
        for bundle_id in self.ids():
            with contextlib.suppress(RecordUnreadable, BundleNotFound):
                found.append(self.entry(bundle_id))
        found.sort(key=lambda entry: str(entry.get("died_at", "")), reverse=True)
        return found

    def entry(self, bundle_id: str) -> dict[str, Any]:
        """One line of the list. Raises as :meth:`bundle`."""
        entry = self._load(bundle_id, ENTRY)
        folder = self.root / bundle_id
        entry["unread"] = not (folder / READ).exists()
        entry["announced"] = (folder / ANNOUNCED).exists()
        return entry

    def report(self, bundle_id: str) -> dict[str, Any]:
        """The report as the panel reads it. Raises as :meth:`bundle`."""
        report = self._load(bundle_id, REPORT)
        report["unread"] = not (self.root / bundle_id / READ).exists()
        return report

    def bundle(self, bundle_id: str) -> dict[str, Any]:
        """What is known about the death.

        Raises:
            BundleNotFound: No such id.
            RecordUnreadable: The file is damaged, or from a newer major version.
        """
        bundle = self._load(bundle_id, BUNDLE)
        check_format(bundle)
        return bundle

    def mark(self, bundle_id: str, name: str) -> None:
        """Leave the mark `READ` or `ANNOUNCED`. Raises as :meth:`bundle`, and OSError."""
        with self._open(bundle_id) as folder:
            os.close(folder.create(name))

    def remove(self, bundle_id: str) -> None:
        """Delete a bundle. Raises as :meth:`bundle`."""
        self._open(bundle_id).close()
        shutil.rmtree(self.root / bundle_id, ignore_errors=True)

    def size_bytes(self, bundle_id: str) -> int:
        """Bytes of the bundle's files; 0 when it is gone."""
        total = 0
        with contextlib.suppress(OSError):
            for item in os.scandir(self.root / bundle_id):
                total += item.stat(follow_symlinks=False).st_size
        return total

    def _open(self, bundle_id: str) -> PrivateFolder:
        path = self.root / _checked(bundle_id)
        if not path.is_dir():
            raise BundleNotFound(bundle_id)
        try:
            return PrivateFolder(path)
        except FolderUnusable as bad:
            raise RecordUnreadable(str(bad)) from bad

    def _load(self, bundle_id: str, name: str) -> dict[str, Any]:
        with self._open(bundle_id) as folder:
            content = folder.read(name, _LIMIT_BYTES)
        try:
            value = json.loads(content or b"")
        except (ValueError, RecursionError) as bad:
            raise RecordUnreadable(
                f"{name} of the report {bundle_id} is missing or damaged."
            ) from bad
        if not isinstance(value, dict):
            raise RecordUnreadable(f"{name} of the report {bundle_id} is not what it should be.")
        return value


def check_format(bundle: dict[str, Any]) -> None:
    """Refuse a bundle that this version cannot read.

    Raises:
        RecordTooNew: A newer major format.
        RecordUnreadable: No format at all.
    """
    try:
        major = int(bundle["format"][0])
    except (KeyError, TypeError, ValueError, IndexError) as bad:
        raise RecordUnreadable("The bundle names no format.") from bad
    if major > FORMAT[0]:
        raise RecordTooNew(f"The bundle {bundle.get('id', '')}", major, FORMAT[0])


def _checked(bundle_id: str) -> str:
    if not isinstance(bundle_id, str) or not _ID.fullmatch(bundle_id):
        raise BundleNotFound(str(bundle_id)[:80])
    return bundle_id
