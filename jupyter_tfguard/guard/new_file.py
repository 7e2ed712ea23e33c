"""Creates an owner-only file that gets its name once it is complete, and never replaces another file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

_NAMES_LIMIT = 100


@contextlib.contextmanager
def new_file(folder: Path, name: str) -> Iterator[tuple[IO[bytes], Callable[[], Path]]]:
    """An unnamed file of mode 0600, and a function that names it; without that call the file is deleted.

    If the file system does not support unnamed files, the file has a temporary hidden name, which remains after a kill.
    """
    temporary = folder / f".{name}.{os.getpid()}.part"
    descriptor = _unnamed(folder)
    is_named = descriptor is None
    if descriptor is None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w+b", buffering=0) as file:
            os.fchmod(descriptor, 0o600)

            def publish() -> Path:
                os.fsync(file.fileno())
                source = str(temporary) if is_named else f"/proc/self/fd/{file.fileno()}"
                return _named(source, folder, name, file.fileno())

            yield file, publish
    finally:
        if is_named:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _unnamed(folder: Path) -> int | None:
    """Open an unnamed file; None if that is not supported. Source: O_TMPFILE in open(2)."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, flag | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _named(source: str, folder: Path, name: str, descriptor: int) -> Path:
    """Give a file its name; never replaces another file.

    Raises:
        OSError: The file could not be linked or renamed.
    """
    for number in range(1, _NAMES_LIMIT):
        path = folder / (f"{name}.npz" if number == 1 else f"{name}-{number}.npz")
        with contextlib.suppress(FileExistsError):
            try:
                # Passing a descriptor makes Python follow the link in /proc. It has no other effect: both paths are
                # absolute.
                os.link(source, path, src_dir_fd=descriptor, follow_symlinks=True)
            except PermissionError:
                if source.startswith("/proc/"):
                    raise
                # A file system without hard links: create an empty file of that name, then replace it.
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                os.replace(source, path)
            return path
    raise FileExistsError(17, f"{name}.npz exists")
