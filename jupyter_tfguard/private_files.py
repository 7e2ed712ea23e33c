"""Private folders and files: 0700 and 0600 under any umask, owned by this user, opened without following links.

The data folder and every folder below it must belong to this user; the folders above it are not checked. There is no
protection against programs of the same user, which have the same rights. Windows has no owners and modes: there only
the file type is checked.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from .errors import FolderUnusable
from .places import LIVE_VARIABLE, data_folder

HAS_OWNERS = hasattr(os, "geteuid") and hasattr(os, "fchmod")
# O_NONBLOCK: opening a pipe does not wait for its other end.
_FILE_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


class PrivateFolder:
    """A folder that only its owner can enter.

    Args:
        path: No part below or including the data folder may be a link.
        make: Create it if it does not exist, including parent folders.

    Raises:
        FolderUnusable: The folder cannot be created, does not exist, is a link or belongs to another user, or a folder
            between it and the data folder is a link or belongs to another user.
    """

    def __init__(self, path: Path, *, make: bool = True) -> None:
        self.path = path
        try:
            root = _root_of(path)
            if make:
                root.parent.mkdir(parents=True, exist_ok=True)
            where = root
            _check_folder(where, make=make)
            for name in path.relative_to(root).parts:
                where /= name
                _check_folder(where, make=make)
        except OSError as bad:
            raise FolderUnusable(
                f"The folder {path} is not usable: {bad.strerror or bad}. "
                "Set TFGUARD_DIR to a folder of your own on a local disk."
            ) from bad

    def open(self, name: str, flags: int) -> int:
        """Descriptor of the regular file `name` in this folder; new files get mode 0600 under any umask.

        Args:
            name: A plain name, without a path.
            flags: As for :func:`os.open`; never O_TRUNC, which would empty a file before it is checked.

        Raises:
            FolderUnusable: It is not a regular file of this user with exactly one hard link.
            OSError: The system call failed (no such file, a link, full disk, no descriptors left).
        """
        if os.path.basename(name) != name or name in ("", ".", "..") or "\0" in name:
            raise FolderUnusable(f"{name!r} is not a plain file name")
        path = self.path / name
        descriptor = os.open(path, flags | _FILE_FLAGS, 0o600)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise FolderUnusable(f"{path} is not a plain file")
            if HAS_OWNERS and found.st_uid != os.geteuid():
                raise FolderUnusable(f"{path} belongs to another user (uid {found.st_uid})")
            if HAS_OWNERS and flags & os.O_CREAT and stat.S_IMODE(found.st_mode) != 0o600:
                os.fchmod(descriptor, 0o600)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def create(self, name: str, *, append: bool = False) -> int:
        """Descriptor for reading and writing of the file `name`, created or truncated. Raises as :meth:`open`."""
        descriptor = self.open(name, os.O_RDWR | os.O_CREAT | (os.O_APPEND if append else 0))
        try:
            os.ftruncate(descriptor, 0)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """At most the last `limit_bytes` bytes of the file `name`; None if it does not exist or cannot be trusted."""
        try:
            descriptor = self.open(name, os.O_RDONLY)
        except (OSError, FolderUnusable):
            return None
        try:
            with open(descriptor, "rb", buffering=0) as file:
                file.seek(max(0, os.fstat(descriptor).st_size - limit_bytes))
                parts = []
                left = limit_bytes
                while left > 0 and (part := file.read(min(left, 1 << 16))):
                    parts.append(part)
                    left -= len(part)
                return b"".join(parts)
        except OSError:
            return None

    def write_whole(self, name: str, content: bytes) -> None:
        """Write the file `name` atomically: a reader sees the old or the new content, never a part.

        A link with this name is replaced, never followed.

        Raises:
            OSError: The system call failed; no partial file is left.
            FolderUnusable: `name` is not a plain name.
        """
        temporary = f".{name}.{os.getpid()}.{os.urandom(4).hex()}"
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
            os.replace(self.path / temporary, self.path / name)
        except OSError:
            with contextlib.suppress(OSError):
                self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        """Delete the file `name`; does not follow a link.

        Raises:
            OSError: It does not exist, is a folder, or the system call failed.
        """
        os.unlink(self.path / name)

    def has(self, name: str) -> bool:
        """True if the folder contains an entry with this name."""
        return os.path.lexists(self.path / name)

    def names(self) -> list[str]:
        """Names in the folder, sorted; empty if it cannot be read."""
        try:
            return sorted(os.listdir(self.path))
        except OSError:
            return []


def _root_of(path: Path) -> Path:
    """The tfguard folder that contains `path` (data folder or folder for live recordings); else `path` itself."""
    live = os.environ.get(LIVE_VARIABLE)
    roots = (data_folder(), Path(live).expanduser() if live else path)
    return next((root for root in roots if path.is_relative_to(root)), path)


def _check_folder(path: Path, *, make: bool) -> None:
    """Create the folder if `make`, and remove access for other users. Raises OSError and FolderUnusable."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
            os.chmod(path, 0o700)  # the umask may have removed rights of the owner
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(0, "it is a link or a file")
    if not HAS_OWNERS:
        return
    if found.st_uid != os.geteuid():
        raise FolderUnusable(
            f"The folder {path} belongs to another user (uid {found.st_uid}). "
            "Set TFGUARD_DIR to a folder of your own."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(path, 0o700)


def file_stats(path: Path) -> list[tuple[str, os.stat_result]]:
    """Name and stat of each entry of a folder, without following links; empty if there is no folder. Never raises.

    Entries that are removed meanwhile are left out.
    """
    found = []
    with contextlib.suppress(OSError), os.scandir(path) as items:
        for item in items:
            with contextlib.suppress(OSError):
                found.append((item.name, item.stat(follow_symlinks=False)))
    return found


def remove_tree(path: Path) -> None:
    """Delete a file, or a folder with its content, without following links. Safe if another process does the same.

    Raises:
        OSError: `path` does not exist, or something cannot be deleted.
    """
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    for name in os.listdir(path):
        with contextlib.suppress(FileNotFoundError):
            remove_tree(path / name)
    os.rmdir(path)


def remove_folder(path: Path) -> None:
    """Like :func:`remove_tree`, but ignores what cannot be deleted."""
    with contextlib.suppress(OSError):
        remove_tree(path)
