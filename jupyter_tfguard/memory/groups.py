"""The memory control groups visible from here, cgroup v1 and v2: where they are, and the values in their files.

Groups above the root of the visible mount cannot be read (the usual case in a container).

Source: cgroups(7), cgroup_namespaces(7), proc_pid_mountinfo(5), Documentation/admin-guide/cgroup-v1/memory.rst and
cgroup-v2.rst of Linux.
"""

from __future__ import annotations

import math
import os
import posixpath
import re
from typing import Any, NamedTuple

from ..errors import SourceUnavailable
from ..procfs import colon_lines, read_int, read_text, space_lines
from ..units import parse_kib

# v1 prints the largest page count it can hold for "no limit": 9223372036854771712 with pages of 4 KiB.
_V1_NO_LIMIT_BYTES = 1 << 62
_OCTAL = re.compile(r"\\([0-7]{3})")


class GroupFiles(NamedTuple):
    """Names of a group's files, and of fields in ``memory.stat`` that include descendant groups.

    Attributes:
        cache: File cache, which can be reclaimed.
        held: Memory that cannot: anonymous memory and tmpfs.
    """

    limit: str
    used: str
    peak: str  # in version 2 since Linux 5.19
    swap_limit: str
    swap_used: str
    cache: tuple[str, str]
    held: tuple[str, str]


FILES = {
    # In version 1 the swap limit includes memory.
    1: GroupFiles(
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.max_usage_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.memsw.usage_in_bytes",
        ("total_active_file", "total_inactive_file"),
        ("total_rss", "total_shmem"),
    ),
    2: GroupFiles(
        "memory.max",
        "memory.current",
        "memory.peak",
        "memory.swap.max",
        "memory.swap.current",
        ("active_file", "inactive_file"),
        ("anon", "shmem"),
    ),
}
STAT = "memory.stat"


class MemoryGroup(NamedTuple):
    """One control group of the memory controller. A value is None if its file is missing or contains no number.

    Attributes:
        path: As in ``/proc/[pid]/cgroup``.
        directory: Directory of its files.
        version: 1 or 2.
        own: True for the group of the process, False for an ancestor.
    """

    path: str
    directory: str
    version: int
    own: bool

    def limit_bytes(self) -> int | None:
        """Bytes the group may use; None = no limit. Source: memory.limit_in_bytes, memory.max."""
        return self._limit(self.files.limit)

    def used_bytes(self) -> int | None:
        """Bytes in use, file cache included. Source: memory.usage_in_bytes, memory.current."""
        return self._int(self.files.used)

    def swap_limit_bytes(self) -> int | None:
        """Bytes of swap, in version 1 of memory and swap, that the group may use; None = no limit."""
        return self._limit(self.files.swap_limit)

    def swap_used_bytes(self) -> int | None:
        """Bytes in use of what :meth:`swap_limit_bytes` counts; None if the system does not count it."""
        return self._int(self.files.swap_used)

    def peak_bytes(self) -> int | None:
        """Highest use. Source: memory.max_usage_in_bytes; memory.peak, Linux 5.19 and later."""
        return self._int(self.files.peak)

    def reclaimable_bytes(self) -> int | None:
        """File cache, which is reclaimed before anything is killed; without tmpfs.

        Source: memory.stat, active_file + inactive_file (v1: total_..., including descendants). These counters still
        include a deleted file for up to two seconds; the memory in use no longer does.
        """
        found = self._lines(STAT)
        known = [part for name in self.files.cache if (part := found.get(name)) is not None]
        if not known:
            return None
        used, held = self.used_bytes(), sum(found.get(name, 0) for name in self.files.held)
        return sum(known) if used is None else max(0, min(sum(known), used - held))

    def oom_count(self) -> int | None:
        """How often the limit of this group itself invoked the OOM killer. Source: v2 memory.events.local, oom."""
        return self._lines("memory.events.local").get("oom") if self.version == 2 else None

    def oom_kill_count(self) -> int | None:
        """OOM-killed processes of the group; on v2 including descendant groups, and sometimes counting one twice.

        Source: oom_kill of memory.oom_control (Linux 4.13), of memory.events.
        """
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        return self._lines(name).get("oom_kill")

    def failcnt_count(self) -> int | None:
        """How often the limit was hit. Source: memory.failcnt; max of memory.events.local."""
        if self.version == 1:
            return read_int(f"{self.directory}/memory.failcnt")
        return self._lines("memory.events.local").get("max")

    def pids(self) -> tuple[int, ...] | None:
        """Processes of the group that are visible here; None if unreadable. Source: cgroup.procs."""
        try:
            listed = read_text(f"{self.directory}/cgroup.procs").split()
        except SourceUnavailable:
            return None
        return tuple(int(pid) for pid in listed if pid != "0")  # 0: of another pid namespace

    def counters(self) -> dict[str, Any]:
        """All values that show an out-of-memory kill, read now: the fields of ``record.facts.GroupCounters``."""
        return {
            "path": self.path,
            "version": self.version,
            "own": self.own,
            "limit_bytes": self.limit_bytes(),
            "used_bytes": self.used_bytes(),
            "peak_bytes": self.peak_bytes(),
            "oom_count": self.oom_count(),
            "oom_kill_count": self.oom_kill_count(),
            "failcnt_count": self.failcnt_count(),
        }

    @property
    def files(self) -> GroupFiles:
        """The names of its files."""
        return FILES[self.version]

    def _limit(self, name: str) -> int | None:
        limit = self._int(name)
        return None if limit is None or limit >= _V1_NO_LIMIT_BYTES else limit

    def _int(self, name: str) -> int | None:
        return read_int(f"{self.directory}/{name}")

    def _lines(self, name: str) -> dict[str, int]:
        try:
            return space_lines(read_text(f"{self.directory}/{name}"))
        except SourceUnavailable:
            return {}


def memory_groups(pid: int, *, root: str = "") -> tuple[MemoryGroup, ...]:
    """The memory group of a process first, then its ancestors as far as they are visible.

    Raises:
        SourceUnavailable: There is no such process, no memory controller is mounted here, or the group is outside of
            the mounts of this process.
    """
    path, version = group_path(read_text(f"{root}/proc/{pid}/cgroup"))
    return groups_at(path, version, root=root)


def groups_at(path: str, version: int, *, root: str = "") -> tuple[MemoryGroup, ...]:
    """The memory group with this path and its ancestors, even if it has no processes left.

    Raises:
        SourceUnavailable: No memory controller of that version is mounted here, or the group is gone or not visible.
    """
    mounts = _mounts(read_text(f"{root}/proc/self/mountinfo"), version)
    if version == 2 and not any(
        "memory" in _controllers(f"{root}{point}/cgroup.controllers") for _, point in mounts
    ):
        raise SourceUnavailable("no memory controller is mounted here")
    for top, point in mounts:
        below = _relative(path, top)
        if below is None:
            continue
        directory = root + posixpath.join(point, below).rstrip("/")
        if os.path.isdir(directory):
            return _with_ancestors(path, directory, root + point, version)
    raise SourceUnavailable(f"the control group {path} is not visible here")


def group_path(text: str) -> tuple[str, int]:
    """Path and version of the memory group in a ``/proc/[pid]/cgroup``.

    Raises:
        SourceUnavailable: It contains none.
    """
    # 4:memory:/user.slice/user-1000.slice      v1; several controllers may share a line: 9:cpu,memory:/a
    # 0::/user.slice/session-2.scope            v2
    unified = None
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            return _plain(path), 1
        if number == "0" and not controllers:
            unified = path
    if unified is None:
        raise SourceUnavailable("the process is in no memory control group")
    return _plain(unified), 2


def _plain(path: str) -> str:
    # The OS kernel appends this suffix if the group was removed while its last process was exiting.
    return path.removesuffix(" (deleted)")


def _mounts(text: str, version: int) -> list[tuple[str, str]]:
    """Root within the hierarchy and mount point of each mount, those that show most ancestors first.

    ``35 31 0:32 /docker/1f /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory``
    """
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        place, kind = before.split(" "), after.split(" ")
        if len(place) < 5 or len(kind) < 3:
            continue
        fits = kind[0] == "cgroup2" if version == 2 else kind[0] == "cgroup"
        if fits and (version == 2 or "memory" in kind[2].split(",")):
            found.append((_unescape(place[3]), _unescape(place[4])))
    return sorted(found, key=lambda mount: len(mount[0]))


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def _relative(path: str, top: str) -> str | None:
    """`path` relative to the mount's `top`; None if it is outside or unknown (``/..``)."""
    if ".." in path.split("/") or ".." in top.split("/"):
        return None
    if top == "/":
        return path.lstrip("/")
    if path == top:
        return ""
    return path[len(top) + 1 :] if path.startswith(top + "/") else None


def _controllers(file: str) -> list[str]:
    try:
        return read_text(file).split()
    except SourceUnavailable:
        return []


def _with_ancestors(path: str, directory: str, top: str, version: int) -> tuple[MemoryGroup, ...]:
    found = [MemoryGroup(path, directory, version, own=True)]
    top = top.rstrip("/")
    while directory != top and directory.startswith(top + "/"):
        directory = posixpath.dirname(directory)
        path = posixpath.dirname(path)
        # v1 until Linux 5.11: the limit of a group with use_hierarchy 0 does not apply to its descendants.
        if version == 1 and read_int(f"{directory}/memory.use_hierarchy") == 0:
            break
        found.append(MemoryGroup(path, directory, version, own=False))
    return tuple(found)


def machine_bytes(root: str = "") -> float:
    """Memory of the machine; infinite if unknown. Source: /proc/meminfo, MemTotal."""
    try:
        return parse_kib(colon_lines(read_text(f"{root}/proc/meminfo"))["MemTotal"])
    except (SourceUnavailable, KeyError, ValueError):
        return math.inf
