"""Private folders and files: 0700 and 0600 under any umask, used by a folder descriptor, without following links.

:mod:`~..private_files` says what is refused, and why.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from ..errors import FolderUnusable
from ..private_files import open_file, open_folder, remove_tree
from .own_descriptors import Identity, close_ours, identity


class PrivateFolder:
    """A folder that only its owner may enter, held open while it is used.

    If user code closes the descriptor, its number may mean a folder of the user's: from then on every method fails.

    Args:
        path: Where it is.
        make: Make it when there is none.

    Raises:
        FolderUnusable: It cannot be made, is not there, is a link, or belongs to another user.
    """

    def __init__(self, path: Path, *, make: bool = True) -> None:
        self.path = path
        self._held: tuple[int, Identity | None] | None = None
        try:
            descriptor = open_folder(path, make=make)
        except OSError as bad:
            raise FolderUnusable(
                f"The folder {path} cannot be used: {bad.strerror or bad}. "
                "Set TFGUARD_DIR to a folder of your own on a local disk."
            ) from bad
        if descriptor is not None:
            self._held = descriptor, identity(descriptor)

    @property
    def _here(self) -> int | None:
        """The descriptor, if it is still ours; None where the system has none."""
        held = self._held
        if held is None:
            return None
        if identity(held[0]) != held[1]:
            raise OSError(errno.EBADF, f"other code closed the descriptor of {self.path}")
        return held[0]

    def open(self, name: str, flags: int) -> int:
        """Descriptor of the regular file `name` in this folder; new files get mode 0600.

        Raises:
            FolderUnusable: It is not a regular file, has another name elsewhere, or belongs to another user.
            OSError: The system refused (a link, full disk, no file, no descriptors left).
        """
        return open_file(self._here, self.path, name, flags)

    def create(self, name: str, *, append: bool = False) -> int:
        """Descriptor, for reading and writing, of the empty file `name`; an old one is emptied. Raises as :meth:`open`."""
        descriptor = self.open(name, os.O_RDWR | os.O_CREAT | (os.O_APPEND if append else 0))
        try:
            os.ftruncate(descriptor, 0)
        except OSError:
            os.close(descriptor)
            raise
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
            FolderUnusable: `name` is no plain name.
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
            self._replace(temporary, name)
        except OSError:
            with contextlib.suppress(OSError):
                self.remove(temporary)
            raise

    def _replace(self, old: str, new: str) -> None:
        """Give a file its name; a link that has it is replaced, never followed."""
        here = self._here
        if here is not None:
            os.replace(old, new, src_dir_fd=here, dst_dir_fd=here)
        else:
            os.replace(self.path / old, self.path / new)

    def remove(self, name: str) -> None:
        """Delete the file `name`; of a link, the link.

        Raises:
            OSError: There is none, it is a folder, or the system refused.
        """
        here = self._here
        if here is not None:
            os.unlink(name, dir_fd=here)
        else:
            os.unlink(self.path / name)

    def remove_folder(self, name: str) -> None:
        """Delete the folder `name` with all that is in it; of a link, the link.

        Raises:
            OSError: It is not there, or something in it cannot be deleted.
        """
        here = self._here
        if here is not None:
            remove_tree(here, name)
        else:
            shutil.rmtree(self.path / name)

    def has(self, name: str) -> bool:
        """True when there is something of this name in the folder; False when that cannot be told."""
        try:
            here = self._here
            where = {} if here is None else {"dir_fd": here}
            os.stat(name if where else self.path / name, follow_symlinks=False, **where)
        except OSError:
            return False
        return True

    def names(self) -> list[str]:
        """Names in the folder, sorted; empty when it cannot be read."""
        try:
            here = self._here
            return sorted(os.listdir(self.path if here is None else here))
        except OSError:
            return []

    def close(self) -> None:
        """Give the folder descriptor back; doing it twice is harmless."""
        held, self._held = self._held, None
        if held is not None:
            close_ours(*held)

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def file_stats(path: Path) -> list[tuple[str, os.stat_result]]:
    """Name and stat of each entry of a folder, of a link the link's; without those that go meanwhile. Raises nothing.

    What was found before the folder could not be read any further is told; nothing where there is none.
    """
    found = []
    with contextlib.suppress(OSError), os.scandir(path) as items:
        for item in items:
            with contextlib.suppress(OSError):
                found.append((item.name, item.stat(follow_symlinks=False)))
    return found


def remove_folder(path: Path) -> None:
    """Delete a folder of ours with all that is in it, following no link on the way. What cannot be deleted stays."""
    with (
        contextlib.suppress(OSError, FolderUnusable),
        PrivateFolder(path.parent, make=False) as around,
    ):
        around.remove_folder(path.name)
