"""A recorded death as it is handed over: the id of a report, the folder of a bundle, or an exported zip.

A zip may come from a stranger: nothing of it is unpacked, one file of it is read, and no more of that than a bundle may have.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

from ..errors import BundleNotFound, RecordUnreadable
from ..record.bundle import BUNDLE, BundleStore, check_format
from ..record.groups import is_group_id
from ..redact import one_line

LIMIT_BYTES = 8 * 1024 * 1024
_ZIP_LIMIT_BYTES = 64 * 1024 * 1024
_ZIP_FILES_LIMIT = 1000
# No link is followed, and a pipe is not waited for. Windows knows only some of them.
_READ = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READ |= getattr(os, _name, 0)

Bundle = dict[str, Any]


def read_recorded(told: str, store: BundleStore) -> Bundle:
    """The bundle that is meant.

    Args:
        told: Id of a report of `store`, folder of a bundle, or an exported zip.
        store: Where the reports are kept.

    Raises:
        BundleNotFound: There is nothing of this name.
        RecordUnreadable: It cannot be read, or nothing was recorded of it. RecordTooNew: it is from a newer version.
    """
    if is_group_id(told):
        raise RecordUnreadable(
            f"{told} tells of deaths that were only counted: there is no recording of them to replay."
        )
    path = Path(told)
    # Unlike Path.is_dir, these do not raise for a name that is too long.
    if os.path.isdir(path):
        return _bundle(_from_folder(path), told)
    if os.path.isfile(path):
        return _bundle(_from_zip(path), told)
    try:
        return store.bundle(told)
    except BundleNotFound as missing:
        if path.suffix or len(path.parts) > 1:  # it was meant as a file
            raise RecordUnreadable(f"There is no file or folder {told}.") from missing
        raise


def _from_folder(path: Path) -> bytes:
    # The folder is the user's: it is read as it lies there, and nothing of it is changed.
    try:
        descriptor = os.open(path / BUNDLE, _READ)
    except FileNotFoundError as missing:
        raise RecordUnreadable(f"There is no {BUNDLE} in {path}.") from missing
    except OSError as bad:  # a link among them
        raise RecordUnreadable(
            f"{BUNDLE} in {path} cannot be read: {bad.strerror or bad}."
        ) from bad
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RecordUnreadable(f"{BUNDLE} in {path} is no file.")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(LIMIT_BYTES + 1)
    except OSError as bad:
        raise RecordUnreadable(
            f"{BUNDLE} in {path} cannot be read: {bad.strerror or bad}."
        ) from bad
    finally:
        os.close(descriptor)


def _from_zip(path: Path) -> bytes:
    try:
        if path.stat().st_size > _ZIP_LIMIT_BYTES:
            raise RecordUnreadable(f"{path} is larger than any exported report.")
        with zipfile.ZipFile(path) as archive:
            named = archive.infolist()
            if len(named) > _ZIP_FILES_LIMIT:
                raise RecordUnreadable(f"{path} holds more files than any exported report.")
            found = [info for info in named if info.filename.rpartition("/")[2] == BUNDLE]
            if len(found) != 1:
                raise RecordUnreadable(
                    f"{path} holds no recording ({BUNDLE}); reports of counted deaths have none."
                )
            with archive.open(found[0]) as file:
                return file.read(LIMIT_BYTES + 1)
    except RecordUnreadable:
        raise
    # Encrypted, cut short, or no zip at all; each way of compressing has an error of its own.
    except Exception as bad:
        said = one_line(str(bad))
        raise RecordUnreadable(f"{path} cannot be read as an exported report: {said}.") from bad


def _bundle(content: bytes, told: str) -> Bundle:
    if len(content) > LIMIT_BYTES:
        raise RecordUnreadable(f"{BUNDLE} of {told} is larger than any bundle.")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as bad:
        raise RecordUnreadable(f"{BUNDLE} of {told} is damaged.") from bad
    if not isinstance(value, dict):
        raise RecordUnreadable(f"{BUNDLE} of {told} is not what it should be.")
    check_format(value)
    return value
