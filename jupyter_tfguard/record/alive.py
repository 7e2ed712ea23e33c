"""Whether the writer of a recording still lives, also where process ids tell nothing: several machines or containers that
share a folder.

The kernel holds a POSIX record lock on a file in its recording. The system drops it at any death; a forked child has no
part in it; it is seen by every process that shares the file system. It has one weakness: closing any descriptor of that
file in the kernel drops it too, so nothing in the kernel opens its own ``alive.lock``, and a lock that user code dropped
by reading the folder is taken again with the next second's samples.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..errors import FolderUnusable
from ..mounts import is_remote
from .folders import PrivateFolder, file_stats
from .identity import ProcessIdentity, boot_id
from .own_descriptors import close_ours, identity

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "alive.lock"
# A recording that has not changed for so long, by the clock of its file system, is taken for a dead kernel's where nothing
# better can be known. Copies of a living kernel's recording are touched every REFRESH_SECONDS; other machines may see that
# a minute late (acregmax of nfs(5)).
FRESH_SECONDS = 300.0
REFRESH_SECONDS = 30.0
_TAKEN = (errno.EAGAIN, errno.EACCES)
_TRIES = 5
_PAUSE_SECONDS = 0.01
_MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class Place:
    """Where process ids mean the same: a machine, a boot of it, a pid namespace; "" what this system does not have."""

    host: str
    boot_id: str
    pid_namespace: str

    @classmethod
    def here(cls) -> Place:
        """Where this process runs."""
        return cls(_host(), boot_id(), _pid_namespace())

    @classmethod
    def of(cls, header: dict[str, Any]) -> Place:
        """Where the writer of a recording ran, by its header."""
        names = ("host", "boot_id", "pid_namespace")
        return cls(*(str(header.get(name) or "") for name in names))

    @property
    def key(self) -> str:
        """Eight hex digits that stand for it in a file name."""
        text = "\0".join((self.host, self.boot_id, self.pid_namespace))
        return hashlib.blake2s(text.encode("utf-8", "replace"), digest_size=4).hexdigest()

    def sees_processes_of(self, other: Place) -> bool:
        """True when a process id there names the same process here."""
        return (self.boot_id, self.pid_namespace) == (other.boot_id, other.pid_namespace)


def _host() -> str:
    """Node name and a hash of the machine id, which itself is not to be shown around: machine-id(5)."""
    node = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        machine = _MACHINE_ID.read_bytes().strip()
    except OSError:
        return node
    key = hashlib.blake2s(machine, digest_size=4, person=b"tfguard").hexdigest()
    return f"{node}/{key}"


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
            self._take()
        except OSError as bad:
            self.close()
            if bad.errno in _TAKEN:
                raise FolderUnusable(
                    f"The recording {folder.path} belongs to another kernel that is alive."
                ) from bad
            # No locks here. A file that nobody holds would read as a death.
            with contextlib.suppress(OSError):
                os.unlink(folder.path / LOCK)

    def _take(self) -> None:
        if fcntl is None:
            raise OSError(errno.ENOSYS, "no record locks on this system")
        for left in reversed(range(_TRIES)):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as bad:
                # Somebody who looks whether we live holds it for an instant.
                if bad.errno not in _TAKEN or not left:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def renew(self) -> bool:
        """Take the lock again, should user code have dropped it. Costs a microsecond; not for forked children.

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
        """Give the descriptor back, and with it the lock; doing it twice is harmless."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                close_ours(descriptor, self._identity)


# --- everywhere else


class Lock(Enum):
    """What a look at a recording's lock tells."""

    HELD = "held"
    FREE = "free"
    UNKNOWN = "unknown"


class JudgedBy(Enum):
    """What a verdict rests on."""

    LOCK = "lock"  # held, or free although this file system has locks
    PROCESS = "process"  # ids here mean what they meant to the writer
    SILENCE = "silence"  # the time since the last change, and nothing else


@dataclass(frozen=True)
class LifeFacts:
    """All that a verdict rests on.

    Attributes:
        runs: Whether the very process runs; None when process ids of there mean nothing here.
        same_host: Whether the host's name and machine id are ours.
        lock: What the lock says.
        lock_counts: False on a remote file system: its locks may be kept by each machine for itself.
        silent_seconds: Since the newest change.
    """

    runs: bool | None
    same_host: bool
    lock: Lock
    lock_counts: bool
    silent_seconds: float


@dataclass(frozen=True)
class Verdict:
    """Whether the writer lives, and how that is known."""

    alive: bool
    by: JudgedBy


def judge(facts: LifeFacts) -> Verdict:
    """Whether the writer of a recording lives. Reads nothing. When in doubt it lives, for FRESH_SECONDS."""
    if facts.lock is Lock.HELD:
        return Verdict(True, JudgedBy.LOCK)
    if facts.runs:
        return Verdict(True, JudgedBy.PROCESS)
    # Machines made from one image in the middle of a boot have the same boot id: the host must agree to a death.
    if facts.runs is False and facts.same_host:
        return Verdict(False, JudgedBy.PROCESS)
    if facts.lock is Lock.FREE and facts.lock_counts:
        return Verdict(False, JudgedBy.LOCK)
    return Verdict(facts.silent_seconds < FRESH_SECONDS, JudgedBy.SILENCE)


class Looker:
    """Looks at the recordings of one folder: who lives?

    Args:
        root: Folder of recordings.
    """

    def __init__(self, root: Path) -> None:
        self.here = Place.here()
        self._root = root
        self._lock_counts = not is_remote(root)
        self._now: float | None = None

    def verdict(self, path: Path, identity: ProcessIdentity, header: dict[str, Any]) -> Verdict:
        """Whether the writer of the recording at `path` lives."""
        place = Place.of(header)
        runs = identity.is_running() if self.here.sees_processes_of(place) else None
        # The lock of a process that is known to run is not touched: it may be our own, and a look would drop it.
        lock = Lock.UNKNOWN if runs else look_at_lock(path)
        silent = 0.0 if runs else self.silent_seconds(path)
        return judge(LifeFacts(runs, self.here.host == place.host, lock, self._lock_counts, silent))

    def silent_seconds(self, path: Path) -> float:
        """Seconds since the newest change in a recording, by the clock of its own file system."""
        if self._now is None:
            self._now = file_system_now(self._root)
        return self._now - newest_change(path)


def look_at_lock(path: Path) -> Lock:
    """What the lock of the recording at `path` says. Never to be called for a recording of this process."""
    if fcntl is None:
        return Lock.UNKNOWN
    try:
        with PrivateFolder(path, make=False) as folder:
            descriptor = folder.open(LOCK, os.O_RDONLY)
    except (OSError, FolderUnusable):
        return Lock.UNKNOWN
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as bad:
        return Lock.HELD if bad.errno in _TAKEN else Lock.UNKNOWN
    finally:
        os.close(descriptor)  # gives it back
    return Lock.FREE


def newest_change(path: Path) -> float:
    """Unix seconds of the newest change of a folder or a file in it; 0 when it cannot be read."""
    try:
        newest = path.lstat().st_mtime
    except OSError:
        return 0.0
    return max([newest, *(found.st_mtime for _, found in file_stats(path))])


def file_system_now(root: Path) -> float:
    """Unix seconds by the clock that stamps the files of this folder; ours when nothing can be written there."""
    probe = f".clock.{os.getpid()}"
    try:
        with PrivateFolder(root) as folder:
            descriptor = folder.create(probe)
            try:
                os.write(descriptor, b"?")
                return os.fstat(descriptor).st_mtime
            finally:
                os.close(descriptor)
                os.unlink(root / probe)
    except (OSError, FolderUnusable):
        return time.time()
