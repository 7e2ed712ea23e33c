"""Opens folders and files that only their owner may use, and nothing that somebody planted in their place.

Links, pipes, devices, sockets, hard links and what belongs to another user are refused before they are touched, and
again on the open descriptor. Not separable are programs of the same user: they may do anything that we may.

Where the system has no folder descriptors (Windows), paths are used and only the kind of a file is checked.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import FolderUnusable
from .places import data_folder

HAS_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "geteuid") and hasattr(os, "fchmod")
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_FOLDER_FLAGS = os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC
_LINK_LIMIT = 40  # as Linux, path_resolution(7)
_ATTEMPTS = 8
_FIX = "Set TFGUARD_DIR to a folder of your own."


def open_folder(path: Path, *, make: bool) -> int | None:
    """Descriptor of a folder of ours, with mode 0700; None where the system has none.

    Args:
        path: Nothing at or below tfguard's data folder may be a link.
        make: Make it, and what is missing above it.

    Raises:
        FolderUnusable: It is a link, belongs to somebody else, or lies where somebody else could replace it.
        OSError: The system refused.
    """
    if not HAS_DESCRIPTORS:
        if make:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return None
    _walk(path, make=make)
    descriptor = os.open(path, _FOLDER_FLAGS)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid():
            raise FolderUnusable(
                f"The folder {path} belongs to another user (uid {found.st_uid}). {_FIX}"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(descriptor, 0o700)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _walk(path: Path, *, make: bool) -> None:
    """Look at every step of the way to `path`: another user must not be able to put things into it."""
    absolute, ours = path.absolute(), data_folder().absolute()
    # The steps from the data folder on are ours: no links there. Above it, links are somebody's way to arrange a disk.
    plain_from = len(ours.parts) if absolute.is_relative_to(ours) else len(absolute.parts)
    waiting = [(p, n >= plain_from) for n, p in enumerate(absolute.parts[1:], 2)][::-1]
    where = absolute.anchor
    around = os.lstat(where)
    links = 0
    while waiting:
        part, ours_alone = waiting.pop()
        if part == "..":
            where = os.path.dirname(where)
            around = os.lstat(where)
            continue
        step = os.path.join(where, part)
        _check_around(path, step, around)
        try:
            found = os.lstat(step)
        except FileNotFoundError:
            if not make:
                raise
            _make(step)
            found = os.lstat(step)
        _check_planted(path, step, found, around)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if ours_alone or links > _LINK_LIMIT:
                raise FolderUnusable(f"The folder {path} cannot be used: {step} is a link. {_FIX}")
            target = Path(os.readlink(step))
            if target.is_absolute():
                where, around = target.anchor, os.lstat(target.anchor)
            rest = target.parts[1:] if target.is_absolute() else target.parts
            waiting += [(part, False) for part in reversed(rest)]
            continue
        where, around = step, found


def _make(step: str) -> None:
    try:
        os.mkdir(step, 0o700)
    except FileExistsError:
        return  # somebody was faster; it is looked at like any other
    # A umask may have taken rights from the owner.
    if stat.S_IMODE(os.lstat(step).st_mode) != 0o700:
        os.chmod(step, 0o700)


def _check_around(path: Path, step: str, around: os.stat_result) -> None:
    """Refuse a step that another user could replace at any time."""
    open_to_all = around.st_mode & stat.S_IWOTH and not around.st_mode & stat.S_ISVTX
    if open_to_all and around.st_uid != os.geteuid():
        raise FolderUnusable(
            f"The folder {path} cannot be used: anyone may replace {step}, because the folder around it is "
            f"writable by all without the sticky bit. {_FIX}"
        )


def _check_planted(path: Path, step: str, found: os.stat_result, around: os.stat_result) -> None:
    """Refuse a step that another user put into a folder that is open to all."""
    if around.st_mode & stat.S_IWOTH and found.st_uid not in (0, os.geteuid()):
        raise FolderUnusable(
            f"The folder {path} cannot be used: {step} belongs to another user (uid {found.st_uid}) "
            f"and lies where anyone may put things. {_FIX}"
        )


def open_file(folder: int | None, path: Path, name: str, flags: int) -> int:
    """Descriptor of the regular file `name`, ours alone; a new one gets mode 0600 under any umask.

    Args:
        folder: Descriptor of the folder, None where there are none.
        path: Path of the folder.
        name: A plain name, without a path.
        flags: As for :func:`os.open`; never O_TRUNC, which would empty a file before it is looked at.

    Raises:
        FolderUnusable: It is not a plain file of ours with one name.
        OSError: The system refused (no such file, full disk, no descriptors left).
    """
    if os.path.basename(name) != name or name in ("", ".", "..") or "\0" in name:
        raise FolderUnusable(f"{name!r} is not a plain file name")
    for _ in range(_ATTEMPTS):
        more = 0
        try:
            # Before it is opened: opening a pipe or a device is noticed at its other end.
            _check_file(_look(folder, path, name), path, name)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            more = os.O_EXCL
        try:
            descriptor = _open(folder, path, name, flags | more)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
            continue  # somebody made it meanwhile; it is looked at like any other
        try:
            found = _check_open(descriptor, folder, path, name)
            if flags & os.O_CREAT and stat.S_IMODE(found.st_mode) != 0o600 and HAS_DESCRIPTORS:
                os.fchmod(descriptor, 0o600)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    raise FolderUnusable(f"{path / name} changes while it is opened")


def _check_open(descriptor: int, folder: int | None, path: Path, name: str) -> os.stat_result:
    """The open file is plain and ours, and `name` is its only name.

    A hard link may go between our opening it and our counting. So it is counted, found under its name, and counted
    again: only a file that had this name and no other all the while passes. That a link comes and goes within each of
    these steps is seen where the system tells whether the name that was opened is still there.
    """
    found = os.fstat(descriptor)
    _check_file(found, path, name)
    if not HAS_DESCRIPTORS:
        return found
    try:
        named = _look(folder, path, name)
    except FileNotFoundError:
        named = None
    again = os.fstat(descriptor)
    if (
        named is None
        or (named.st_dev, named.st_ino) != (found.st_dev, found.st_ino)
        or {named.st_nlink, again.st_nlink} != {1}
        or not _still_named(descriptor, name)
    ):
        raise FolderUnusable(f"{path / name} was replaced while it was opened")
    return found


def _still_named(descriptor: int, name: str) -> bool:
    """False when the name through which a file was opened was taken away since, even if it was given again.

    True where the system does not tell. Source: proc_pid_fd(5): of a file that was deleted, the link says so.
    """
    try:
        return os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")) == name
    except OSError:
        return True


def make_room(folder: int | None, path: Path, name: str) -> None:
    """Delete a plain file of ours, if there is one of this name.

    Raises:
        FolderUnusable: What has the name is something else.
        OSError: The system refused.
    """
    try:
        _check_file(_look(folder, path, name), path, name)
        os.unlink(name, dir_fd=folder) if folder is not None else os.unlink(path / name)
    except FileNotFoundError:
        return


def _check_file(found: os.stat_result, path: Path, name: str) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise FolderUnusable(f"{path / name} is not a plain file of its own")
    if HAS_DESCRIPTORS and found.st_uid != os.geteuid():
        raise FolderUnusable(f"{path / name} belongs to another user (uid {found.st_uid})")


def _look(folder: int | None, path: Path, name: str) -> os.stat_result:
    if folder is not None:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return os.lstat(path / name)


def _open(folder: int | None, path: Path, name: str, flags: int) -> int:
    safe = flags | _NOFOLLOW | _CLOEXEC | _NONBLOCK | getattr(os, "O_BINARY", 0)
    if folder is not None:
        return os.open(name, safe, 0o600, dir_fd=folder)
    return os.open(path / name, safe, 0o600)


def empty_folder(descriptor: int) -> None:
    """Delete everything in a folder, following no links, however deep it is nested: never more than two descriptors.

    What cannot be deleted stays.
    """
    number = 0
    while True:
        names = os.listdir(descriptor)
        before = number
        for name in names:
            try:
                os.unlink(name, dir_fd=descriptor)
                number += 1
                continue
            except FileNotFoundError:
                continue
            except OSError:
                pass  # a folder
            number += _flatten(descriptor, name, number)
        if number == before:
            return


def _flatten(descriptor: int, name: str, number: int) -> int:
    """Delete a folder's files, bring its folders one level up, and delete it.

    Returns:
        How many things were deleted or moved: 0 when nothing can be done.
    """
    done = 0
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
            os.chmod(name, 0o700, dir_fd=descriptor)
        child = os.open(name, _FOLDER_FLAGS, dir_fd=descriptor)
    except OSError:
        return 0
    try:
        for inner in os.listdir(child):
            try:
                os.unlink(inner, dir_fd=child)
            except OSError:
                moved = f".{number + done}.{os.getpid()}"
                try:
                    os.rename(inner, moved, src_dir_fd=child, dst_dir_fd=descriptor)
                except OSError:
                    continue
            done += 1
        os.rmdir(name, dir_fd=descriptor)
        done += 1
    except OSError:
        pass  # what is left is left
    finally:
        os.close(child)
    return done
