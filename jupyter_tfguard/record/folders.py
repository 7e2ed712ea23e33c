"""Private folders and files: 0700 and 0600, opened relative to a folder descriptor, without following links.

Where the system has no folder descriptors (Windows), paths are used instead.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from ..errors import FolderUnusable

_HAS_DIR_FD = os.open in os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class PrivateFolder:
    """A folder that only its owner may enter, held open while it is used.

    Raises:
        FolderUnusable: It cannot be made, is a link, or belongs to somebody else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _HAS_DIR_FD:
                self._descriptor = os.open(path, os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC)
                self._check_owner()
        except OSError as bad:
            self.close()
            raise FolderUnusable(
                f"The folder {path} cannot be used: {bad.strerror or bad}. "
                "Set TFGUARD_DIR to a folder of your own on a local disk."
            ) from bad

    def _check_owner(self) -> None:
        assert self._descriptor is not None
        found = os.fstat(self._descriptor)
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            self.close()
            raise FolderUnusable(
                f"The folder {self.path} belongs to another user (uid {found.st_uid}). "
                "Set TFGUARD_DIR to a folder of your own."
            )
        if stat.S_IMODE(found.st_mode) & 0o077 and hasattr(os, "fchmod"):
            os.fchmod(self._descriptor, 0o700)

    def open(self, name: str, flags: int) -> int:
        """Descriptor of the regular file `name` in this folder; new files get mode 0600.

        Raises:
            FolderUnusable: It is a link, not a regular file, or hard-linked elsewhere.
            OSError: The system refused (full disk, no file, no descriptors left).
        """
        if os.path.basename(name) != name or name in ("", ".", ".."):
            raise FolderUnusable(f"{name!r} is not a plain file name")
        safe = flags | _NOFOLLOW | _CLOEXEC | _NONBLOCK
        if self._descriptor is not None:
            descriptor = os.open(name, safe, 0o600, dir_fd=self._descriptor)
        else:
            descriptor = os.open(self.path / name, safe, 0o600)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise FolderUnusable(f"{self.path / name} is not a plain file of its own")
            if flags & os.O_CREAT and hasattr(os, "fchmod"):
                os.fchmod(descriptor, 0o600)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def create(self, name: str, *, append: bool = False) -> int:
        """Descriptor, for reading and writing, of a new or emptied file `name`. Raises as :meth:`open`."""
        descriptor = self.open(name, os.O_RDWR | os.O_CREAT | (os.O_APPEND if append else 0))
        # Only now is it known to be a file of ours: O_TRUNC would have emptied a planted hard link.
        os.ftruncate(descriptor, 0)
        return descriptor

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """At most the last `limit_bytes` bytes of the file `name`; None when there is none or it cannot be trusted."""
        try:
            descriptor = self.open(name, os.O_RDONLY)
        except (OSError, FolderUnusable):
            return None
        try:
            size = os.fstat(descriptor).st_size
            os.lseek(descriptor, max(0, size - limit_bytes), os.SEEK_SET)
            parts = []
            left = limit_bytes
            while left > 0 and (part := os.read(descriptor, min(left, 1 << 16))):
                parts.append(part)
                left -= len(part)
            return b"".join(parts)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def write_whole(self, name: str, content: bytes) -> None:
        """Write the file `name` in one piece: a reader sees the old one or the new one, never half of it.

        Raises:
            OSError: The system refused; nothing half-written is left.
        """
        temporary = f".{name}.{os.getpid()}"
        descriptor = self.create(temporary)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(self.path / temporary)
            raise
        os.close(descriptor)
        os.replace(self.path / temporary, self.path / name)

    def names(self) -> list[str]:
        """Names in the folder, sorted; empty when it cannot be read."""
        try:
            return sorted(os.listdir(self.path))
        except OSError:
            return []

    def close(self) -> None:
        """Give the folder descriptor back; doing it twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
