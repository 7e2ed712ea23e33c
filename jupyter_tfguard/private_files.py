"""Opens folders and files that only their owner may use: 0700 and 0600 under any umask, no links followed.

The data folder, and every folder below it, must be a folder of this user. The folders above it are not checked.
Programs of the same user are not kept out: they may do anything that we may.

Where the system has no folder descriptors (Windows), paths are used and only the kind of a file is checked.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from .errors import FolderUnusable
from .places import LIVE_VARIABLE, data_folder

HAS_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "geteuid") and hasattr(os, "fchmod")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
# O_NONBLOCK: opening a pipe does not wait for its other end.
_FILE_FLAGS = _NOFOLLOW | _CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_folder(path: Path, *, make: bool) -> int | None:
    """Descriptor of a folder of ours, with mode 0700; None where the system has none.

    Args:
        path: Nothing from the data folder on may be a link.
        make: Make it, and what is missing above it.

    Raises:
        FolderUnusable: It, or a folder between it and the data folder, belongs to another user.
        OSError: The system refused; also for a link.
    """
    if not HAS_DESCRIPTORS:
        if make:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return None
    root = _root_of(path)
    if make:
        root.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _open_one(root, None, str(root), make=make)
    where = root
    for name in path.relative_to(root).parts:
        where /= name
        around = descriptor
        try:
            descriptor = _open_one(where, around, name, make=make)
        finally:
            os.close(around)
    return descriptor


def _root_of(path: Path) -> Path:
    """The folder of ours that `path` is in: the data folder, or the one for live recordings; else `path` itself."""
    live = os.environ.get(LIVE_VARIABLE)
    roots = (data_folder(), Path(live).expanduser() if live else path)
    return next((root for root in roots if path.is_relative_to(root)), path)


def _open_one(path: Path, around: int | None, name: str, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=around)
            os.chmod(name, 0o700, dir_fd=around)  # a umask may have taken rights from the owner
    descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=around)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise FolderUnusable(
                f"The folder {path} belongs to another user (uid {found.st_uid}). "
                "Set TFGUARD_DIR to a folder of your own."
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(descriptor, 0o700)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_file(folder: int | None, path: Path, name: str, flags: int) -> int:
    """Descriptor of the regular file `name`, ours alone; a new one gets mode 0600 under any umask.

    Args:
        folder: Descriptor of the folder, None where there are none.
        path: Path of the folder.
        name: A plain name, without a path.
        flags: As for :func:`os.open`; never O_TRUNC, which would empty a file before it is checked.

    Raises:
        FolderUnusable: It is not a regular file of ours with one name.
        OSError: The system refused (no such file, a link, full disk, no descriptors left).
    """
    if os.path.basename(name) != name or name in ("", ".", "..") or "\0" in name:
        raise FolderUnusable(f"{name!r} is not a plain file name")
    if folder is not None:
        descriptor = os.open(name, flags | _FILE_FLAGS, 0o600, dir_fd=folder)
    else:
        descriptor = os.open(path / name, flags | _FILE_FLAGS, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise FolderUnusable(f"{path / name} is not a plain file")
        if HAS_DESCRIPTORS:
            if found.st_uid != os.geteuid():
                raise FolderUnusable(f"{path / name} belongs to another user (uid {found.st_uid})")
            if flags & os.O_CREAT and stat.S_IMODE(found.st_mode) != 0o600:
                os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_tree(folder: int, name: str) -> None:
    """Delete `name`, and if it is a folder everything in it, following no links. Another process may do the same.

    Raises:
        OSError: It is not there, or something cannot be deleted.
    """
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    inside = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    try:
        for inner in os.listdir(inside):
            with contextlib.suppress(FileNotFoundError):
                remove_tree(inside, inner)
    finally:
        os.close(inside)
    os.rmdir(name, dir_fd=folder)
