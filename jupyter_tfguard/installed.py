"""Detects an upgrade under a running process: the package's files on disk are no longer those that it has loaded."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from ._version import __version__

PACKAGE = Path(__file__).parent


def changed_since(moment: float, folder: Path = PACKAGE) -> bool:
    """True if files of the package were written after a Unix second, are of another version, or are gone.

    Takes milliseconds and needs no earlier look at the files, unlike :class:`Installed`, which compares their content.
    """
    try:
        # An installer may link older files: then only their version is another one.
        if repr(__version__) not in (folder / "_version.py").read_text().replace('"', "'"):
            return True
    except OSError:
        return True
    now = time.time()
    for where, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                try:
                    written = os.stat(os.path.join(where, name)).st_mtime
                except OSError:  # removed meanwhile
                    return True
                if moment < written <= now:
                    return True
    return False


class Installed:
    """The package's Python files as they are now, to compare them later.

    Args:
        folder: The package.
    """

    def __init__(self, folder: Path = PACKAGE) -> None:
        self._folder = folder
        self._stamps = self._read_stamps()
        self._content = self._digest()
        self._is_other = False

    def is_other(self) -> bool:
        """True if the files have other content now, or are gone. Takes milliseconds."""
        stamps = self._read_stamps()
        if stamps != self._stamps:  # also after an installation of the same version
            self._is_other, self._stamps = self._digest() != self._content, stamps
        return self._is_other

    def _read_stamps(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for path in self._files():
            try:
                status = os.stat(path)
            except OSError:  # removed meanwhile
                continue
            found[path] = (status.st_mtime_ns, status.st_size)
        return found

    def _digest(self) -> bytes:
        whole = hashlib.sha256()
        for path in self._files():
            try:
                content = path.read_bytes()
            except OSError:
                continue
            whole.update(f"{path.relative_to(self._folder)} {len(content)}\n".encode() + content)
        return whole.digest()

    def _files(self) -> list[Path]:
        return sorted(self._folder.rglob("*.py"))
