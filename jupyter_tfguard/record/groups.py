"""Deaths without a report of their own, counted exactly: one group for each kernel that dies again and again, and one for
many kernels that die at once.

A group is one file, ``ID.json``, written whole:

==========  ===========================================================================================
``format``  major and minor version
``group``   the counts: :class:`~.counted.Group`
``entry``   its line in the list, as the panel reads it
``report``  the same at length
==========  ===========================================================================================

Counts and words are one file, so that they never disagree. What each death was is told by :class:`~.counted.Death`; the words come
from whoever counts (``report/grouped.py``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import BundleNotFound, FolderUnusable, RecordTooNew, RecordUnreadable
from .counted import CauseCount, Death, Group, short_hash
from .exclusive import exclusive
from .folders import PrivateFolder
from .records import major_of

FORMAT = (1, 0)
# A kernel that died this long ago and dies again begins a new group.
GAP_SECONDS = 3600.0
_SUFFIX = ".json"
_READ_ATTEMPTS = 20
_LIMIT_BYTES = 1024 * 1024
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-group-[0-9a-f]{8}")

Json = dict[str, Any]
Render = Callable[[Group], tuple[Json, Json]]


class GroupStore:
    """All groups of this user. Reading never makes a folder; a damaged group is left out of lists."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ids(self) -> list[str]:
        """Ids of all groups, the one that began last first."""
        try:
            names = os.listdir(self.root)
        except OSError:
            return []
        ids = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return sorted((found for found in ids if is_group_id(found)), reverse=True)

    def count(
        self, deaths: Sequence[Death], render: Render, *, one_kernel: bool, limit_count: int
    ) -> Group:
        """Add deaths to their group; a new one begins where there is none.

        Args:
            deaths: At least one, the newest last; with `one_kernel` all of the same kernel.
            render: The line in the list, and the report, of the group as it is then.
            one_kernel: False puts them into the group of many kernels.
            limit_count: Groups kept at most. While so many kernels die again and again, those of one more are counted
                in the group of many kernels.

        Returns:
            The group they are counted in.

        Raises:
            FolderUnusable: The folder cannot be made or is not ours.
            OSError: The system refused (full disk). Nothing was counted then.
        """
        with PrivateFolder(self.root) as folder, exclusive(folder):
            # Of children that were killed and of kernels that died: never one sum.
            many = f"many:{deaths[-1].kernel_alive}"
            key = deaths[-1].kernel_key if one_kernel else many
            known = self._going_on(short_hash(key), deaths[-1].died)
            if known is None and one_kernel and not self._has_room(folder, limit_count):
                one_kernel, key = False, many
                known = self._going_on(short_hash(key), deaths[-1].died)
            group = known or Group(_new_id(key, deaths[0].died), one_kernel)
            group = group.with_deaths(deaths)
            self._write(folder, group, render)
            return group

    def _going_on(self, key_hash: str, died: float) -> Group | None:
        for group_id in self.ids():
            if not group_id.endswith(key_hash):
                continue
            with contextlib.suppress(RecordUnreadable, BundleNotFound):
                group = self.group(group_id)
                if abs(died - group.last) < GAP_SECONDS or group.first <= died <= group.last:
                    return group
        return None

    def _has_room(self, folder: PrivateFolder, limit_count: int) -> bool:
        ids = self.ids()
        if len(ids) < limit_count:
            return True
        oldest = min(ids, key=self.last_death)
        if time.time() - self.last_death(oldest) < GAP_SECONDS:
            return False
        self._delete(folder, oldest)
        return True

    def _write(self, folder: PrivateFolder, group: Group, render: Render) -> None:
        entry, report = render(group)
        content = {
            "format": list(FORMAT),
            "group": dataclasses.asdict(group),
            "entry": entry,
            "report": report,
        }
        self._save(folder, group, content)

    def _save(self, folder: PrivateFolder, group: Group, content: Json) -> None:
        name = group.id + _SUFFIX
        folder.write_whole(name, json.dumps(content, allow_nan=False).encode())
        with contextlib.suppress(OSError):
            os.utime(self.root / name, (group.last, group.last))  # read by `last_death`

    def group(self, group_id: str) -> Group:
        """The counts.

        Raises:
            BundleNotFound: No such id.
            RecordUnreadable: The file is damaged, or from a newer major version.
        """
        return _group_of(self._load(group_id), group_id)

    def entry(self, group_id: str) -> Json:
        """Its line in the list, with ``unread`` and ``announced``. Raises as :meth:`group`."""
        content = self._load(group_id)
        return _part(content, "entry", group_id) | _marks(_group_of(content, group_id))

    def report(self, group_id: str) -> Json:
        """The report as the panel reads it. Raises as :meth:`group`."""
        content = self._load(group_id)
        marks = _marks(_group_of(content, group_id))
        return _part(content, "report", group_id) | {"unread": marks["unread"]}

    def mark(self, group_id: str, mark: str) -> None:
        """Note that a person has seen it (``read``), or that a kernel told of it (``announced``), as it is now.

        Raises:
            BundleNotFound, RecordUnreadable: As :meth:`group`.
            OSError: The system refused.
        """
        self._load(group_id)
        with PrivateFolder(self.root) as folder, exclusive(folder):
            content = self._load(group_id)
            group = _group_of(content, group_id)
            content["group"][f"{mark}_count"] = group.deaths_count
            self._save(folder, group, content)

    def remove(self, group_id: str) -> None:
        """Delete a group. Raises as :meth:`group`, and OSError."""
        self._checked_path(group_id)
        with PrivateFolder(self.root) as folder, exclusive(folder):
            self._delete(folder, group_id)

    def _delete(self, folder: PrivateFolder, group_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            folder.remove(group_id + _SUFFIX)

    def last_death(self, group_id: str) -> float:
        """Unix seconds of its last death, without reading it; 0 when it is gone."""
        try:
            return self._path(group_id).stat().st_mtime
        except OSError:
            return 0.0

    def size_bytes(self) -> int:
        """Bytes of all groups."""
        total = 0
        for group_id in self.ids():
            with contextlib.suppress(OSError):
                total += self._path(group_id).stat().st_size
        return total

    def _path(self, group_id: str) -> Path:
        return self.root / f"{group_id}{_SUFFIX}"

    def _checked_path(self, group_id: str) -> Path:
        if not is_group_id(group_id) or not self._path(group_id).exists():
            raise BundleNotFound(str(group_id)[:80])
        return self._path(group_id)

    def _load(self, group_id: str) -> Json:
        path = self._checked_path(group_id)
        try:
            with PrivateFolder(self.root, make=False) as folder:
                # While deaths are counted the file is replaced again and again: one look in between may find none.
                tries = (folder.read(path.name, _LIMIT_BYTES) for _ in range(_READ_ATTEMPTS))
                content = next((found for found in tries if found), None)
        except FolderUnusable as bad:
            raise RecordUnreadable(str(bad)) from bad
        if content is None and not path.exists():  # removed since
            raise BundleNotFound(group_id)
        try:
            value = json.loads(content or b"")
        except (ValueError, RecursionError):
            value = None
        major = major_of(value)
        if major is None:
            raise RecordUnreadable(f"The report {group_id} is missing or damaged.")
        if major > FORMAT[0]:
            raise RecordTooNew(f"The report {group_id}", major, FORMAT[0])
        loaded: Json = value
        return loaded


def is_group_id(text: object) -> bool:
    """True for the id of a group, ``20261121-021407-group-3fa9c2d1``, whether there is one or not."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def _new_id(key: str, died: float) -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(died))}-group-{short_hash(key)}"


def _group_of(content: Json, group_id: str) -> Group:
    try:
        told = dict(_part(content, "group", group_id))
        told["causes"] = tuple(CauseCount(**cause) for cause in told["causes"])
        told["kernels"] = tuple(str(kernel) for kernel in told["kernels"])
        group = Group(**told | {"id": group_id})
        numbers = (group.deaths_count, group.read_count, group.announced_count)
        if not all(type(number) is int and 0 <= number < 1 << 53 for number in numbers):
            raise ValueError("a count that is none")
        if not all(type(m) in (int, float) and 0 <= m < 1e11 for m in (group.first, group.last)):
            raise ValueError("a moment that is none")
    except (TypeError, ValueError, LookupError) as bad:
        raise RecordUnreadable(f"The counts of the report {group_id} are damaged.") from bad
    return group


def _part(content: Json, name: str, group_id: str) -> Json:
    part = content.get(name)
    if not isinstance(part, dict):
        raise RecordUnreadable(f"The report {group_id} is not what it should be.")
    return part


def _marks(group: Group) -> Json:
    return {
        "unread": group.deaths_count > group.read_count,
        "announced": group.deaths_count <= group.announced_count,
    }
