"""Determines the file system of a path: a local disk, or a file system served by a network or a program.

Source: ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)); unknown on other systems than Linux.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOUNTINFO = Path("/proc/self/mountinfo")
# Types as mountinfo names them. They may hang, lose their server, show stale times to other machines, or support locks
# only partly.
REMOTE_TYPES = frozenset(
    """
    9p acfs afpfs afs auristorfs beegfs beegfs_nodev ceph cifs coda davfs drvfs fakeowner fhgfs fuse gfs2 glusterfs gpfs
    grpcfuse lustre mmfs ncpfs nfs nfs3 nfs4 ocfs2 orangefs osxfs panfs prl_fs pvfs2 smb2 smb3 smbfs v9fs vboxsf virtiofs
    vmhgfs webdav wekafs
    """.split()  # noqa: SIM905
)
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One mounted file system.

    Attributes:
        point: The mount point.
        kind: Type of the file system: ``ext4``, ``nfs4``.
        options: Options of the file system: ``rw,size=65536k``.
    """

    point: str
    kind: str
    options: str


def is_remote(path: Path) -> bool:
    """True if the path is on a network or FUSE file system; False if not, or if that is unknown."""
    kind = file_system_type(path)
    return kind is not None and (kind in REMOTE_TYPES or kind.startswith("fuse."))


def file_system_type(path: Path) -> str | None:
    """Type of the file system of the path, which may not exist yet; None = unknown."""
    found = mount_of(path)
    return None if found is None else found.kind


def mount_of(path: Path, mountinfo: Path | None = None) -> Mount | None:
    """The mount that contains the path, which may not exist yet; None = unknown.

    Args:
        path: Any path.
        mountinfo: File with the mounts; default: the mounts of this process.
    """
    real = os.path.realpath(path)
    best: Mount | None = None
    for mount in _mounts(mountinfo or MOUNTINFO):
        if _is_below(real, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip(os.sep) + os.sep)


def _mounts(mountinfo: Path) -> Iterator[Mount]:
    """All mounts; of several at one mount point, the latest comes last."""
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        # 25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=65536k
        fields, _, rest = line.partition(" - ")
        words, kind = fields.split(" "), rest.split(" ", 2)
        if len(words) > 4 and kind[0]:
            point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), words[4])
            yield Mount(point, kind[0], kind[2] if len(kind) > 2 else "")
