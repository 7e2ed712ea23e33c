"""Checks whether the writer of a recording is still running, and claims a dead kernel's recording for one report.

In the boot and PID namespace of the writer, its process id is checked. Elsewhere (another container or machine that
shares the folder) the kernel's lock decides: a POSIX record lock on a file in its recording. The system releases the
lock whenever the kernel ends, and a forked child does not inherit it. On a remote file system, where each machine may
keep its own locks, only the time since the newest change is known.

Closing any descriptor of the locked file in the kernel releases the lock. So nothing in the kernel opens its own
``alive.lock``. If user code releases the lock by reading the folder, the kernel takes it again with the next second's
samples.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import time
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

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
# In a claimed recording: the process that makes the report, and its place.
_CLAIMANT = "claimant.json"
_CLAIMANT_LIMIT_BYTES = 1000
# If nothing else is known, a recording unchanged for this long belongs to a dead kernel, and an unchanged claim is
# abandoned. The watcher touches its copies of a running kernel's recording every three seconds. Other machines may see
# that a minute late (acregmax of nfs(5)), and their clocks may be some minutes off.
FRESH_SECONDS = 300.0
# A process of an earlier version did not name itself. Its report takes a second, or fails: an upgrade changed the files under it.
_UNNAMED_SECONDS = 15.0
_TAKEN = (errno.EAGAIN, errno.EACCES)
# Early versions wrote a process id instead of eight random digits.
_CLAIMED = re.compile(r"claimed-[0-9a-f]{1,8}-(\d{1,10}-\d{1,20})", re.ASCII)


class Place(NamedTuple):
    """The scope in which a process id is unique: a boot and a PID namespace. "" if the system has no such thing."""

    boot_id: str
    pid_namespace: str

    @classmethod
    def here(cls) -> Place:
        """The place of this process."""
        return cls(boot_id(), _pid_namespace())

    @classmethod
    def of(cls, header: dict[str, Any]) -> Place:
        """The place of a recording's writer, from the header."""
        return cls(*(str(header.get(name) or "") for name in ("boot_id", "pid_namespace")))


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


# --- in the kernel


class AliveLock:
    """The lock that the kernel holds while it records.

    Args:
        folder: The recording; new, or left by a dead kernel.

    Raises:
        FolderUnusable: Another running kernel holds the lock: two machines use the same recording name.
        OSError: Could not create the file.
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
            # No locks on this system. An unlocked file would mean that the kernel is dead.
            with contextlib.suppress(OSError):
                folder.remove(LOCK)

    def renew(self) -> bool:
        """Take the lock again if user code released it. Costs a microsecond. Does nothing in a forked child.

        Returns:
            False if the file, and so the recording, was deleted.
        """
        if self._descriptor < 0 or fcntl is None or os.getpid() != self._pid:
            return True
        try:
            found = os.fstat(self._descriptor)
            # User code may have closed our descriptor and reused its number for another file.
            if (found.st_dev, found.st_ino) != self._identity:
                return True
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return found.st_nlink > 0

    def close(self) -> None:
        """Close the descriptor, which releases the lock. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                close_ours(descriptor, self._identity)


# --- everywhere else


class JudgedBy(Enum):
    """The evidence that a writer is dead."""

    LOCK = "lock"  # not held, on a file system that has locks
    PROCESS = "process"  # no such process in the writer's PID namespace
    SILENCE = "silence"  # only the time since the newest change


def crash_known_by(path: Path, writer: ProcessIdentity, header: dict[str, Any]) -> JudgedBy | None:
    """The evidence that the writer of the recording at `path` is dead; None if it is or may be running."""
    if Place.of(header) == Place.here():
        return None if writer.is_running() else JudgedBy.PROCESS
    held = lock_is_held(path)
    if held:
        return None
    if held is False and not is_remote(path):
        return JudgedBy.LOCK
    return JudgedBy.SILENCE if silent_seconds(path) >= FRESH_SECONDS else None


def lock_is_held(path: Path) -> bool | None:
    """Whether the lock of the recording at `path` is held; None if unknown. Do not call it for our own recording."""
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
        os.close(descriptor)  # releases the lock
    return False


def silent_seconds(path: Path) -> float:
    """Seconds since the newest change of a recording."""
    return time.time() - newest_change(path)


def newest_change(path: Path) -> float:
    """Unix seconds of the newest change of a folder or a file in it; 0 if it cannot be read."""
    try:
        newest = path.lstat().st_mtime
    except OSError:
        return 0.0
    return max([newest, *(found.st_mtime for _, found in file_stats(path))])


# --- claims: one report per crash


def claim(path: Path) -> Path | None:
    """Claim a dead kernel's recording for this process. The abandoned claim of another process can be taken over.

    Returns:
        The folder's new path, ``claimed-<random>-<pid>-<start time>``; None if another process was faster.
    """
    target = path.with_name(f"claimed-{os.urandom(4).hex()}-{recording_name(path)}")
    try:
        os.rename(path, target)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(target)  # the age of the claim starts now
    with contextlib.suppress(OSError, FolderUnusable):  # a full or read-only disk
        mine = ProcessIdentity.of(os.getpid())
        named = Place.here()._asdict() | {"process": mine.folder_name if mine else ""}
        PrivateFolder(target, make=False).write_whole(_CLAIMANT, json.dumps(named).encode())
    return target


def give_back(claimed: Path) -> Path:
    """Undo a claim, so that any process may report the crash; the folder's new path, or the old one if that fails."""
    target = claimed.with_name(recording_name(claimed))
    try:
        os.rename(claimed, target)
    except OSError:
        return claimed
    return target


def is_claimed(path: Path) -> bool:
    """True if a process has claimed this recording and may still be writing its report."""
    if _CLAIMED.fullmatch(path.name) is None or silent_seconds(path) >= FRESH_SECONDS:
        return False
    try:
        text = PrivateFolder(path, make=False).read(_CLAIMANT, _CLAIMANT_LIMIT_BYTES)
        named = json.loads(text or b"null")
    except (OSError, ValueError, FolderUnusable):
        return True
    if not isinstance(named, dict):
        return silent_seconds(path) < _UNNAMED_SECONDS
    claimant = ProcessIdentity.from_folder_name(str(named.get("process")))
    return Place.of(named) != Place.here() or claimant is None or claimant.is_running()


def recording_name(path: Path) -> str:
    """The name that a recording had before it was claimed."""
    found = _CLAIMED.fullmatch(path.name)
    return path.name if found is None else found[1]
