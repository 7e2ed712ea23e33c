"""The bundle: the folder of one crash with all input of a diagnosis. It is written once and renamed into place.

=================  ==========================================================================================
``bundle.json``    the facts: ``{"format", "id", "identity", "server", "kernel", "system_log"}``
``report.json``    the conclusions, as the panel reads them
``entry.json``     its entry in the list
``read``           empty; present once a person has seen the report
``announced``      empty; present once an open page has shown the report or the next kernel has printed it
=================  ==========================================================================================

A folder whose name starts with a dot is being written or removed.

``server`` is :class:`~.facts.ServerFacts` (None: no watcher saw the crash). ``kernel`` is the self-reported content of
the recording. ``earlier_deaths`` are the reports that already existed (``cause``, ``died``, ``kernel_id``,
``notebook_path``, and ``kernel_alive``: only a child had died), newest first. ``thread_limits`` are ``group_count`` and
``user_count``, how many threads the control group and the user may have.
"""

from __future__ import annotations

import calendar
import contextlib
import json
import math
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any

from ..errors import BundleNotFound, FolderUnusable, RecordTooNew, RecordUnreadable
from ..private_files import PrivateFolder, file_stats, remove_folder, remove_tree
from .equal import with_same_as
from .records import major_of

FORMAT = (1, 1)
BUNDLE = "bundle.json"
REPORT = "report.json"
ENTRY = "entry.json"
READ = "read"
ANNOUNCED = "announced"
STAMP_LENGTH = len("20261121-021407")
_LIMIT_BYTES = 8 * 1024 * 1024
# Fields of reports that were saved before 27 November 2026.
_NEW_NAMES = {"died_at": "crashed_at", "native_tail": "stderr_tail", "died": "crash_time"}
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9]{1,10}-[0-9a-f]{4,8}")


def new_bundle_id(pid: int, died: float) -> str:
    """An id that sorts by time and names the process: ``20261121-021407-4711-3fa9``."""
    return f"{stamp(died)}-{pid}-{secrets.token_hex(4)}"


def is_bundle_id(value: object) -> bool:
    """True for a text with the format of an id, which is safe to print and to use as a folder name."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def stamp(died: float) -> str:
    """The time part of an id. `died`: Unix seconds; an implausible time is replaced by the current time."""
    known = died if math.isfinite(died) and 0 <= died < 4e9 else time.time()
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(known))


def died_of(bundle_id: str) -> float:
    """Time of the crash from an id, in whole Unix seconds; 0 if it has no valid time."""
    day, clock, *_ = bundle_id.split("-")
    try:
        return calendar.timegm(time.strptime(day + clock, "%Y%m%d%H%M%S"))
    except ValueError:  # for example month 13, in a folder named by hand
        return 0.0


class BundleStore:
    """All reports of this user.

    Reading never creates a folder. Lists leave out damaged reports and reports removed meanwhile.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, bundle: dict[str, Any], report: dict[str, Any], entry: dict[str, Any]) -> None:
        """Write a bundle with its report. It appears whole or not at all.

        Raises:
            FolderUnusable: The folder cannot be created or is not ours.
            OSError: The write failed (full disk).
        """
        self._write(bundle["id"], files_of(bundle, report, entry))

    def _write(self, bundle_id: str, files: dict[str, bytes]) -> None:
        PrivateFolder(self.root)
        target = self.root / _checked(bundle_id)
        temporary = self.root / f".{bundle_id}.{os.getpid()}"
        try:
            folder = PrivateFolder(temporary)
            for name, content in files.items():
                folder.write_whole(name, content)
            os.rename(temporary, target)
        except BaseException as bad:
            remove_folder(temporary)
            if isinstance(bad, OSError) and target.is_dir():
                return  # another process made the report of the same crash
            raise

    def ids(self) -> list[str]:
        """Ids of all bundles, newest first."""
        return sorted((name for name in self._names() if _ID.fullmatch(name)), reverse=True)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.root)
        except OSError:
            return []

    def entries(self) -> list[dict[str, Any]]:
        """The entries of the list, newest crash first, each with ``unread``, ``announced`` and ``same_as``.

        ``same_as`` is the id of the newest in a run of equal crashes (:mod:`~.equal`); None for the newest itself.
        """
        found = []
        for report_id in self.ids():
            with contextlib.suppress(RecordUnreadable, BundleNotFound):
                found.append(self.entry(report_id))
        found.sort(key=lambda entry: str(entry.get("crashed_at", "")), reverse=True)
        return with_same_as((entry, died_of(entry["id"])) for entry in found)

    def entry(self, report_id: str) -> dict[str, Any]:
        """One entry of the list. Raises like :meth:`bundle`."""
        entry = self._load(report_id, ENTRY)
        entry["id"] = report_id
        entry["unread"] = self.is_unread(report_id)
        entry["announced"] = self._has(report_id, ANNOUNCED)
        return entry

    def report(self, report_id: str) -> dict[str, Any]:
        """The report as the panel reads it. Raises like :meth:`bundle`."""
        report = self._load(report_id, REPORT)
        report["unread"] = self.is_unread(report_id)
        return report

    def bundle(self, bundle_id: str) -> dict[str, Any]:
        """The facts about the crash.

        Raises:
            BundleNotFound: No such id.
            RecordUnreadable: The file is damaged, or from a newer major version.
        """
        bundle = self._load(bundle_id, BUNDLE)
        check_format(bundle)
        return bundle

    def is_unread(self, bundle_id: str) -> bool:
        """True until a person has seen the report."""
        return not self._has(bundle_id, READ)

    def _has(self, report_id: str, name: str) -> bool:
        return (self.root / report_id / name).exists()

    def mark(self, report_id: str, name: str) -> None:
        """Write the mark `READ` or `ANNOUNCED`. Raises like :meth:`bundle`, and OSError."""
        try:
            os.close(self._open(report_id).create(name))
        except FileNotFoundError as bad:  # removed meanwhile
            raise BundleNotFound(report_id) from bad

    def remove(self, report_id: str) -> bool:
        """Delete a report and all its files.

        Returns:
            False if another process was faster.

        Raises:
            BundleNotFound: No such id.
            OSError: A part of it could not be deleted.
        """
        if not os.path.lexists(self.root / _checked(report_id)):
            raise BundleNotFound(report_id)
        # Renamed first, so that a reader finds it whole or not at all.
        going = f".{report_id}.{os.getpid()}-{secrets.token_hex(2)}"
        try:
            os.rename(self.root / report_id, self.root / going)
        except FileNotFoundError:
            return False
        remove_tree(self.root / going)
        return True

    def leftovers(self) -> list[str]:
        """Names of folders that are being written or removed, or were when their process was killed."""
        return [n for n in self._names() if n[:1] == "." and _ID.fullmatch(n[1:].partition(".")[0])]

    def size_bytes(self, bundle_id: str) -> int:
        """Size of the bundle's files; 0 if it is gone."""
        return sum(found.st_size for _, found in file_stats(self.root / bundle_id))

    def _open(self, bundle_id: str) -> PrivateFolder:
        path = self.root / _checked(bundle_id)
        if not path.is_dir():
            raise BundleNotFound(bundle_id)
        try:
            return PrivateFolder(path, make=False)
        except FolderUnusable as bad:
            if not path.exists():
                raise BundleNotFound(bundle_id) from bad
            raise RecordUnreadable(str(bad)) from bad

    def _content(self, bundle_id: str, name: str) -> bytes | None:
        content = self._open(bundle_id).read(name, _LIMIT_BYTES)
        if not content and not (self.root / bundle_id).exists():  # removed while we read it
            raise BundleNotFound(bundle_id)
        return content

    def _load(self, bundle_id: str, name: str) -> dict[str, Any]:
        try:
            content = self._content(bundle_id, name) or b""
            value = json.loads(content, object_hook=None if name == BUNDLE else _with_new_names)
        except (ValueError, RecursionError) as bad:
            raise RecordUnreadable(
                f"{name} of the report {bundle_id} is missing or damaged."
            ) from bad
        if not isinstance(value, dict):
            raise RecordUnreadable(f"{name} of the report {bundle_id} has invalid content.")
        return value


def _with_new_names(fields: dict[str, Any]) -> dict[str, Any]:
    return {_NEW_NAMES.get(name, name): value for name, value in fields.items()}


def files_of(
    bundle: dict[str, Any], report: dict[str, Any], entry: dict[str, Any]
) -> dict[str, bytes]:
    """The files of a bundle, by name."""
    files = {BUNDLE: json.dumps(bundle, default=str).encode()}
    # Browsers read these two, and JSON in browsers has no NaN.
    for name, value in ((REPORT, report), (ENTRY, entry)):
        files[name] = json.dumps(value, allow_nan=False).encode()
    return files


def check_format(bundle: dict[str, Any]) -> None:
    """Reject a bundle that this version cannot read.

    Raises:
        RecordTooNew: A newer major format.
        RecordUnreadable: There is no format number.
    """
    major = major_of(bundle)
    if major is None:
        raise RecordUnreadable("The bundle has no format number.")
    if major > FORMAT[0]:
        named = str(bundle.get("id", ""))
        known = named if _ID.fullmatch(named) else "without an id"
        raise RecordTooNew(f"The bundle {known}", major, FORMAT[0])


def _checked(bundle_id: str) -> str:
    if not is_bundle_id(bundle_id):
        raise BundleNotFound(str(bundle_id)[:80])
    return bundle_id
