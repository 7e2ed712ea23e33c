"""Can records be written where they are kept."""

from __future__ import annotations

import os

from ...errors import FolderUnusable
from ...places import DIRECTORY_VARIABLE, data_folder
from ...record.folders import PrivateFolder
from ..check import CheckResult, Status

NAME = "folder of the records"


def check() -> CheckResult:
    """Writes and removes one small file."""
    path = data_folder()
    try:
        with PrivateFolder(path) as folder:
            folder.write_whole("doctor.probe", b"written by jupyter tfguard doctor\n")
            os.unlink(path / "doctor.probe")
    except (FolderUnusable, OSError) as bad:
        fix = f"export {DIRECTORY_VARIABLE}=$HOME/.tfguard"
        return CheckResult(NAME, Status.PROBLEM, f"{path}: {bad}", fix)
    return CheckResult(NAME, Status.OK, f"{path} can be written")
