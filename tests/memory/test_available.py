"""How much memory is left: on the machine, and in groups of both versions, with swap and file cache."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.memory.available import headroom
from jupyter_tfguard.memory.groups import MemoryGroup, memory_groups
from jupyter_tfguard.units import GIB, MIB

pytestmark = pytest.mark.quick


def machine(root: Path, available: int, swap: int = 0, total: int = 16 * GIB) -> None:
    (root / "proc").mkdir()
    lines = {"MemTotal": total, "MemFree": MIB, "MemAvailable": available, "SwapFree": swap}
    text = "".join(f"{name}:   {size // 1024} kB\n" for name, size in lines.items())
    (root / "proc/meminfo").write_text(text)


def group(folder: Path, version: int, **files: object) -> MemoryGroup:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")
    return MemoryGroup("/a", str(folder), version, own=True)


def first_version(
    folder: Path, limit: object, used: int, cache: int, **more: object
) -> MemoryGroup:
    stat = f"cache 5\nactive_file 7\ntotal_inactive_file {cache - 4096}\ntotal_active_file 4096"
    files = {"memory__limit_in_bytes": limit, "memory__usage_in_bytes": used}
    return group(folder, 1, **files, memory__stat=stat, **more)


def second_version(
    folder: Path, limit: object, used: int, cache: int, **more: object
) -> MemoryGroup:
    stat = f"anon 5\ninactive_file {cache - 4096}\nactive_file 4096"
    files = {"memory__max": limit, "memory__current": used}
    return group(folder, 2, **files, memory__stat=stat, **more)


@pytest.mark.parametrize("make", [first_version, second_version])
def test_file_cache_of_a_group_is_available(tmp_path: Path, make: object) -> None:
    machine(tmp_path, 8 * GIB)
    limited = make(tmp_path / "g", 2 * GIB, GIB, 100 * MIB)  # type: ignore[operator]
    found = headroom([limited], root=str(tmp_path))
    assert found.left_bytes == GIB + 100 * MIB
    assert found.smallest_bytes == 2 * GIB


@pytest.mark.parametrize("version", [1, 2])
def test_the_cache_of_a_file_that_was_just_deleted_is_not_available(
    tmp_path: Path, version: int
) -> None:
    machine(tmp_path, 8 * GIB)
    held = {1: "total_rss {}\ntotal_shmem {}\ntotal_active_file 0\ntotal_inactive_file {}"}
    stat = held.get(version, "anon {}\nshmem {}\nactive_file 0\ninactive_file {}")
    make = first_version if version == 1 else second_version
    limited = make(tmp_path / "g", 2 * GIB, 310 * MIB, 4096)
    (tmp_path / "g/memory.stat").write_text(stat.format(280 * MIB, 20 * MIB, 1500 * MIB))
    assert limited.reclaimable_bytes() == 10 * MIB
    found = headroom([limited], root=str(tmp_path))
    assert found.left_bytes == 2 * GIB - 300 * MIB


def test_the_least_of_machine_and_groups_counts(tmp_path: Path) -> None:
    machine(tmp_path, 300 * MIB)
    limited = second_version(tmp_path / "g", 2 * GIB, GIB, 4096)
    assert headroom([limited], root=str(tmp_path)).left_bytes == 300 * MIB


@pytest.mark.parametrize(
    ("make", "no_limit"), [(first_version, 9223372036854771712), (second_version, "max")]
)
def test_a_group_without_a_limit_limits_nothing(
    tmp_path: Path, make: object, no_limit: object
) -> None:
    machine(tmp_path, 8 * GIB)
    free = make(tmp_path / "g", no_limit, GIB, 4096)  # type: ignore[operator]
    found = headroom([free], root=str(tmp_path))
    assert (found.left_bytes, found.smallest_bytes) == (8 * GIB, 16 * GIB)


def test_swap_is_available(tmp_path: Path) -> None:
    machine(tmp_path, 8 * GIB, swap=GIB)
    assert headroom([], root=str(tmp_path)).left_bytes == 9 * GIB


@pytest.mark.parametrize(
    ("allowed", "used", "left"), [("max", 0, 2048), (300 * MIB, 100 * MIB, 1224)]
)
def test_swap_of_a_group_has_a_limit_of_its_own_in_version_2(
    tmp_path: Path, allowed: object, used: int, left: int
) -> None:
    machine(tmp_path, 8 * GIB, swap=GIB)
    swap = {"memory__swap__max": allowed, "memory__swap__current": used}
    limited = second_version(tmp_path / "g", 2 * GIB, GIB, 4096, **swap)
    found = headroom([limited], root=str(tmp_path)).left_bytes
    assert abs(found - left * MIB) < MIB


@pytest.mark.parametrize(("both", "left"), [(2 * GIB, 1024), (int(2.5 * GIB), 1536)])
def test_version_1_limits_memory_and_swap_together(tmp_path: Path, both: int, left: int) -> None:
    machine(tmp_path, 8 * GIB, swap=4 * GIB)
    files = {"memory__memsw__limit_in_bytes": both, "memory__memsw__usage_in_bytes": GIB}
    limited = first_version(tmp_path / "g", 2 * GIB, GIB, 4096, **files)
    found = headroom([limited], root=str(tmp_path)).left_bytes
    assert abs(found - left * MIB) < MIB


def test_a_system_without_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable):
        headroom([], root=str(tmp_path))


def test_this_machine() -> None:
    found = headroom(memory_groups(os.getpid()))
    assert 0 < found.left_bytes <= found.smallest_bytes + psutil.swap_memory().total
