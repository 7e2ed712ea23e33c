"""Whether the writer of a recording still lives, and which process may report its death.

Where process ids mean the same as they did to the writer, its process is looked up. Elsewhere (another container or
machine that shares the folder) the kernel's lock decides: a POSIX record lock on a file in its recording, which the system
drops at any death and a forked child does not inherit. On a remote file system, where locks may be kept by each machine for
itself, only the time since the newest change is left.

Closing any descriptor of the locked file in the kernel drops the lock. So nothing in the kernel opens its own
``alive.lock``, and a lock that user code dropped by reading the folder is taken again with the next second's samples.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..errors import FolderUnusable
from ..mounts import is_remote
from ..private_files import PrivateFolder, file_stats
from .identity import ProcessIdentity, boot_id
from .own_descriptors import close_ours, identity

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "alive.lock"
# A recording without a change for so long belongs to a dead kernel, where nothing better is known; a claim is abandoned
# then. The watcher touches its copies of a living kernel's recording every three seconds; other machines may see that a
# minute late (acregmax of nfs(5)), and their clocks may be some minutes off.
FRESH_SECONDS = 300.0
_TAKEN = (errno.EAGAIN, errno.EACCES)
_CLAIMED = re.compile(r"claimed-[0-9a-f]{8}-(\d{1,10}-\d{1,20})", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where process ids mean the same: a boot of a machine, a pid namespace; "" what this system does not have."""

    boot_id: str
    pid_namespace: str

    @classmethod
    def here(cls) -> Place:
        """Where this process runs."""
        return cls(boot_id(), _pid_namespace())

    @classmethod
    def of(cls, header: dict[str, Any]) -> Place:
        """Where the writer of a recording ran, by its header."""
        return cls(*(str(header.get(name) or "") for name in ("boot_id", "pid_namespace")))


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


# --- in the kernel


class AliveLock:
    """Held by the kernel from the start of its recording to its end.

    Args:
        folder: The recording, new or left over by a dead kernel.

    Raises:
        FolderUnusable: Another living kernel holds it: two machines gave the same name to a recording.
        OSError: The file cannot be made.
    """

    def __init__(self, folder: PrivateFolder) -> None:
        self._pid = os.getpid()
        self._descriptor = folder.open(LOCK, os.O_RDWR | os.O_CREAT)
        self._identity = identity(self._descriptor)
        try:
            if fcntl is None:
                raise OSError(errno.ENOSYS, "this system has no record locks")
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as bad:
            self.close()
            if bad.errno in _TAKEN:
                raise FolderUnusable(
                    f"The recording {folder.path} belongs to another running kernel."
                ) from bad
            # No locks here. A file that nobody holds would read as a death.
            with contextlib.suppress(OSError):
                folder.remove(LOCK)

    def renew(self) -> bool:
        """Take the lock again if user code dropped it. Costs a microsecond; not for forked children.

        Returns:
            False when the file was deleted, and so the recording with it.
        """
        if self._descriptor < 0 or fcntl is None or os.getpid() != self._pid:
            return True
        try:
            found = os.fstat(self._descriptor)
            # User code that closes descriptors by number may have given ours to a file of its own.
            if (found.st_dev, found.st_ino) != self._identity:
                return True
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return found.st_nlink > 0

    def close(self) -> None:
        """Give the descriptor back, and with it the lock; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                close_ours(descriptor, self._identity)


# --- everywhere else


class JudgedBy(Enum):
    """How it is known that a writer is dead."""

    LOCK = "lock"  # free, although this file system has locks
    PROCESS = "process"  # ids here mean what they meant to the writer
    SILENCE = "silence"  # the time since the newest change, and nothing else


def death_known_by(path: Path, writer: ProcessIdentity, header: dict[str, Any]) -> JudgedBy | None:
    """How it is known that the writer of the recording at `path` is dead; None while it lives, or may live."""
    if Place.of(header) == Place.here():
        return None if writer.is_running() else JudgedBy.PROCESS
    held = lock_is_held(path)
    if held:
        return None
    if held is False and not is_remote(path):
        return JudgedBy.LOCK
    return JudgedBy.SILENCE if silent_seconds(path) >= FRESH_SECONDS else None


def lock_is_held(path: Path) -> bool | None:
    """Whether the lock of the recording at `path` is held; None when unknown. Not for a recording of this process."""
    if fcntl is None:
        return None
    try:
        descriptor = PrivateFolder(path, make=False).open(LOCK, os.O_RDONLY)
    except (OSError, FolderUnusable):
        return None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as bad:
        return True if bad.errno in _TAKEN else None
    finally:
        os.close(descriptor)  # gives it back
    return False


def silent_seconds(path: Path) -> float:
    """Seconds since the newest change in a recording."""
    return time.time() - newest_change(path)


def newest_change(path: Path) -> float:
    """Unix seconds of the newest change of a folder or a file in it; 0 when it cannot be read."""
    try:
        newest = path.lstat().st_mtime
    except OSError:
        return 0.0
    return max([newest, *(found.st_mtime for _, found in file_stats(path))])


# --- one death makes one report


def claim(path: Path) -> Path | None:
    """Take a dead kernel's recording for this process alone, also an abandoned one that another process had claimed.

    Returns:
        The folder's new path, ``claimed-<random>-<pid>-<start time>``; None when another process was faster.
    """
    target = path.with_name(f"claimed-{os.urandom(4).hex()}-{recording_name(path)}")
    try:
        os.rename(path, target)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(target)  # from here on the claim's age counts
    return target


def is_claimed(path: Path) -> bool:
    """True when a process has claimed this recording, and may still be at work on its report."""
    return _CLAIMED.fullmatch(path.name) is not None and silent_seconds(path) < FRESH_SECONDS


def recording_name(path: Path) -> str:
    """The name that a recording had before it was claimed."""
    found = _CLAIMED.fullmatch(path.name)
    return path.name if found is None else found[1]
