"""Things planted at a path of ours, each with a target that must not be touched: links, pipes, devices, hard links, folders."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PRECIOUS = b"somebody else's words"


@dataclass
class Planted:
    """What lies there, and how it was.

    Attributes:
        path: Where it was planted.
        target: The folder with what it leads to.
    """

    path: Path
    target: Path
    before: tuple[object, ...] = ()
    listeners: list[Callable[[], bytes]] = field(default_factory=list)

    def check_untouched(self) -> None:
        """It lies there as it was planted, and its target is as it was."""
        assert _look(self.path) == self.before
        self.check_target_untouched()

    def check_target_untouched(self) -> None:
        """Not a byte was written, read or deleted there."""
        assert (self.target / "file").read_bytes() == PRECIOUS
        assert sorted(os.listdir(self.target / "folder")) == ["kept"]
        assert (self.target / "folder" / "kept").read_bytes() == PRECIOUS
        for listen in self.listeners:
            assert listen() == b""


def plant(kind: str, path: Path, target: Path) -> Planted:
    """Plant something of a kind of :data:`KINDS`.

    Args:
        path: Where nothing lies yet.
        target: A folder to be made, outside.
    """
    (target / "folder").mkdir(parents=True)
    (target / "file").write_bytes(PRECIOUS)
    (target / "folder" / "kept").write_bytes(PRECIOUS)
    planted = Planted(path, target)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _KINDS[kind](planted)
    planted.before = _look(path)
    return planted


def _look(path: Path) -> tuple[object, ...]:
    found = os.lstat(path)
    inside = sorted(os.listdir(path)) if stat.S_ISDIR(found.st_mode) else None
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, inside


def _pipe(path: Path) -> Callable[[], bytes]:
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def listen() -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(descriptor, 100)
        return b""

    return listen


def _link_to_file(planted: Planted) -> None:
    planted.path.symlink_to(planted.target / "file")


def _link_to_folder(planted: Planted) -> None:
    planted.path.symlink_to(planted.target / "folder")


def _link_to_nothing(planted: Planted) -> None:
    planted.path.symlink_to(planted.target / "folder" / "new")


def _link_to_pipe(planted: Planted) -> None:
    planted.listeners.append(_pipe(planted.target / "pipe"))
    planted.path.symlink_to(planted.target / "pipe")


def _hard_link(planted: Planted) -> None:
    os.link(planted.target / "file", planted.path)


def _plain_pipe(planted: Planted) -> None:
    planted.listeners.append(_pipe(planted.path))


def _silent_pipe(planted: Planted) -> None:
    os.mkfifo(planted.path)  # nobody at the other end: opening it the usual way waits for ever


def _socket(planted: Planted) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(planted.path.parent)  # a socket's path is at most 108 characters
        try:
            made.bind(planted.path.name)
        finally:
            os.chdir(here)


def _character_device(planted: Planted) -> None:
    os.mknod(planted.path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero: endless to read


def _block_device(planted: Planted) -> None:
    os.mknod(planted.path, 0o600 | stat.S_IFBLK, os.makedev(7, 200))


def _folder(planted: Planted) -> None:
    planted.path.mkdir(mode=0o700)


def _full_folder(planted: Planted) -> None:
    planted.path.mkdir(mode=0o700)
    os.link(planted.target / "file", planted.path / "hard")
    (planted.path / "link").symlink_to(planted.target / "folder")


_KINDS: dict[str, Callable[[Planted], None]] = {
    "link to a file": _link_to_file,
    "link to a folder": _link_to_folder,
    "link to nothing": _link_to_nothing,
    "link to a pipe": _link_to_pipe,
    "hard link": _hard_link,
    "pipe": _plain_pipe,
    "pipe without a reader": _silent_pipe,
    "socket": _socket,
    "folder": _folder,
    "full folder": _full_folder,
}
if hasattr(os, "geteuid") and os.geteuid() == 0:
    _KINDS |= {"character device": _character_device, "block device": _block_device}
KINDS = tuple(_KINDS)
