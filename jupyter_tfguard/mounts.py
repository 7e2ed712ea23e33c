"""On what kind of file system a path lies: a disk of this machine, or one that answers through a network or a program.

Source: ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)); elsewhere psutil's list of partitions.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")
# Types as mountinfo names them. They may hang, lose their server, show old times to other machines, or lock by halves.
REMOTE_TYPES = frozenset(
    """
    9p acfs afpfs afs auristorfs beegfs beegfs_nodev ceph cifs coda davfs drvfs fakeowner fhgfs fuse gfs2 glusterfs gpfs
    grpcfuse lustre mmfs ncpfs nfs nfs3 nfs4 ocfs2 orangefs osxfs panfs prl_fs pvfs2 smb2 smb3 smbfs v9fs vboxsf virtiofs
    vmhgfs webdav wekafs
    """.split()  # noqa: SIM905
)
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_remote(path: Path) -> bool:
    """True when the path lies on a network or FUSE file system; False when it does not, or nobody can tell."""
    kind = file_system_type(path)
    return kind is not None and (kind in REMOTE_TYPES or kind.startswith("fuse."))


def file_system_type(path: Path) -> str | None:
    """Type of the file system that holds the path, which may not exist yet: ``ext4``, ``nfs4``; None when unknown."""
    real = os.path.realpath(path)
    if sys.platform == "win32" and real.startswith("\\\\"):
        return "cifs"
    best, found = -1, None
    for point, kind in _mounts():
        if len(point) >= best and _is_below(real, point):
            best, found = len(point), kind
    return found


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip(os.sep) + os.sep)


def _mounts() -> Iterator[tuple[str, str]]:
    """(mount point, type) of all mounts, the later one of a point last."""
    if sys.platform != "linux":
        import psutil

        for partition in psutil.disk_partitions(all=True):
            yield partition.mountpoint, partition.fstype.lower()
        return
    try:
        lines = MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        fields, _, rest = line.partition(" - ")
        words, kind = fields.split(" "), rest.partition(" ")[0]
        if len(words) > 4 and kind:
            yield _ESCAPED.sub(lambda found: chr(int(found[1], 8)), words[4]), kind
