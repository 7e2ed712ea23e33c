"""Limits of a group and of the groups around it: one answer for every reader, the least headroom."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_tfguard.collectors.cgroup import CgroupCollector
from jupyter_tfguard.collectors.host import HostCollector
from jupyter_tfguard.memory.available import headroom
from jupyter_tfguard.memory.groups import FILES, memory_groups
from jupyter_tfguard.memory.limits import Limit, LimitKind, binding_limit
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick

MOUNTS = {
    1: "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n",
    2: "35 31 0:32 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n",
}


def machine(
    root: Path, version: int, *, own: tuple[int, int], around: tuple[int, int], free: int
) -> None:
    """A machine of 16 GiB with ``/outer/inner``; a limit and the memory in use of each group, in MiB."""
    top = root / ("sys/fs/cgroup/memory" if version == 1 else "sys/fs/cgroup")
    for folder, (limit, used) in ((top / "outer", around), (top / "outer/inner", own)):
        folder.mkdir(parents=True, exist_ok=True)
        names = FILES[version]
        for name, value in ((names.limit, limit), (names.used, used)):
            (folder / name).write_text(f"{value * MIB}\n")
        cache = names.cache[0]
        (folder / "memory.stat").write_text(f"{names.held[0]} 0\n{cache} {MIB}\n")
    (top / "cgroup.controllers").write_text("memory\n")
    for pid in ("self", "4711"):
        (root / "proc" / pid).mkdir(parents=True)
    line = "4:memory:/outer/inner\n" if version == 1 else "0::/outer/inner\n"
    (root / "proc/4711/cgroup").write_text(line)
    (root / "proc/4711/stat").write_text("4711 (python) S 1 2 3 4 5 0 0\n")
    (root / "proc/self/mountinfo").write_text(MOUNTS[version])
    (root / "proc/meminfo").write_text(
        f"MemTotal: {16 << 20} kB\nMemFree: {free << 10} kB\nMemAvailable: {free << 10} kB\n"
        "SwapTotal: 0 kB\nSwapFree: 0 kB\n"
    )
    (root / "proc/vmstat").write_text("oom_kill 0\n")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("own", "around", "free", "limit", "left_mib"),
    [
        # A neighbour holds 480 MiB of the parent group: 115 MiB are left, not 395.
        ((400, 6), (600, 486), 8192, Limit(600 * MIB, LimitKind.CGROUP), 115),
        ((400, 300), (600, 306), 8192, Limit(400 * MIB, LimitKind.CGROUP), 101),
        ((400, 6), (600, 16), 200, Limit(16 * GIB, LimitKind.HOST), 200),
    ],
    ids=["full parent", "full group", "full machine"],
)
def test_every_reader_names_the_limit_with_the_least_headroom(
    tmp_path: Path,
    version: int,
    own: tuple[int, int],
    around: tuple[int, int],
    free: int,
    limit: Limit,
    left_mib: int,
) -> None:
    machine(tmp_path, version, own=own, around=around, free=free)
    root = str(tmp_path)
    values = CgroupCollector(4711, root=root).collect() | HostCollector(root=root).collect()
    assert binding_limit(values) == limit
    assert limit.left(values) == left_mib * MIB
    found = headroom(memory_groups(4711, root=root), root=root)
    assert found == (left_mib * MIB, limit, own[0] * MIB)
