"""Reads a bundle outside the store: the folder of a bundle, or an exported zip.

Neither is trusted. One file is read, up to the size limit of a bundle; nothing is unpacked or changed.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

from ..errors import RecordUnreadable
from ..redact import one_line
from .bundle import BUNDLE, check_format, is_bundle_id

LIMIT_BYTES = 8 * 1024 * 1024


def read_bundle_file(path: Path) -> dict[str, Any]:
    """The bundle in a folder or in an exported zip.

    Raises:
        RecordUnreadable: There is no bundle, or it is damaged.
        RecordTooNew: It is from a newer version.
    """
    if os.path.isdir(path):
        content = _from_folder(path)
    elif path.name == BUNDLE:
        content = _read(path)
    else:
        content = _from_zip(path)
    if len(content) > LIMIT_BYTES:
        raise RecordUnreadable(f"{BUNDLE} of {path} is larger than any bundle.")
    try:
        value = json.loads(content, parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError) as bad:
        raise RecordUnreadable(f"{BUNDLE} of {path} is damaged.") from bad
    if not isinstance(value, dict) or not is_bundle_id(value.get("id")):
        raise RecordUnreadable(f"{BUNDLE} of {path} is not a bundle.")
    check_format(value)
    return value


def _finite(text: str) -> float | None:
    """The number; None for one that is too large, which JSON allows and no other reader of our JSON accepts."""
    number = float(text)
    return number if math.isfinite(number) else None


def _from_folder(path: Path) -> bytes:
    found = path / BUNDLE
    if not found.is_file():  # a pipe would block
        raise RecordUnreadable(f"There is no {BUNDLE} in {path}.")
    return _read(found)


def _read(path: Path) -> bytes:
    _check_is_file(path)
    try:
        with path.open("rb") as file:
            return file.read(LIMIT_BYTES + 1)
    except OSError as bad:
        raise RecordUnreadable(f"Could not read {path}: {bad.strerror}.") from bad


def _check_is_file(path: Path) -> None:
    """Opening a pipe would wait without end for a program that writes into it."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise RecordUnreadable(f"{path} is not a file.")


def _from_zip(path: Path) -> bytes:
    _check_is_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            named = archive.infolist()
            found = [info for info in named if info.filename.rpartition("/")[2] == BUNDLE]
            if len(found) != 1:
                raise RecordUnreadable(f"There is no {BUNDLE} in {path}.")
            with archive.open(found[0]) as file:
                return file.read(LIMIT_BYTES + 1)
    except RecordUnreadable:
        raise
    # Encrypted, truncated, or not a zip file. Each compression method has its own exceptions.
    except Exception as bad:
        raise RecordUnreadable(
            f"Could not read {path} as an exported report: {one_line(str(bad))}."
        ) from bad
