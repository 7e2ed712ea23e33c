"""Groups, limits and counters as other machines print them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jupyter_tfguard.collectors.cgroup import CgroupCollector
from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.memory.groups import MemoryGroup, memory_groups

pytestmark = pytest.mark.quick

FIXTURES = Path(__file__).parents[1] / "fixtures"
GIB = 1024**3


def groups(machine: str) -> tuple[MemoryGroup, ...]:
    return memory_groups(4711, root=str(FIXTURES / machine))


@pytest.mark.parametrize(
    ("machine", "version", "paths"),
    [
        ("microvm-v1-hybrid", 1, ["/process_api/c7d96d389a14", "/process_api", "/"]),
        ("docker-v1", 1, ["/docker/3f1c9d0e7a52b4c6"]),
        ("container-v2-namespace", 2, ["/"]),
        ("virtual-machine-v2", 2, ["/service/kernel", "/service", "/"]),
        (
            "batch-node-v1-bind-mount",
            1,
            ["/slurm/uid_1000/job_77/step_0", "/slurm/uid_1000/job_77"],
        ),
        (
            "kubernetes-node-v2",
            2,
            [
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5d0b.slice/cri-containerd-9c0ffee1.scope",
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5d0b.slice",
                "/kubepods.slice/kubepods-burstable.slice",
                "/kubepods.slice",
                "/",
            ],
        ),
    ],
)
def test_the_own_group_and_all_visible_ancestors_are_found(
    machine: str, version: int, paths: list[str]
) -> None:
    found = groups(machine)
    assert [group.path for group in found] == paths
    assert {group.version for group in found} == {version}
    assert [group.own for group in found] == [True] + [False] * (len(paths) - 1)
    assert all(Path(group.directory).is_dir() for group in found)


@pytest.mark.parametrize(
    ("machine", "limit_bytes"),
    [
        ("docker-v1", 4 * GIB),
        ("kubernetes-node-v2", 8 * GIB),  # the pod's, two levels below the node's 120 GiB
        ("container-v2-namespace", 2 * GIB),
        ("virtual-machine-v2", GIB // 16),
        (
            "batch-node-v1-bind-mount",
            32 * GIB,
        ),  # the ancestor's 1 GiB does not hold: use_hierarchy 0
    ],
)
def test_the_smallest_limit_of_the_ancestors_binds(machine: str, limit_bytes: int) -> None:
    values = CgroupCollector(4711, root=str(FIXTURES / machine)).collect()
    assert values["cgroup.limit_bytes"] == limit_bytes


@pytest.mark.parametrize("machine", ["microvm-v1-hybrid", "desktop-systemd-v2"])
def test_no_limit_is_unknown_and_never_a_huge_number(machine: str) -> None:
    values = CgroupCollector(4711, root=str(FIXTURES / machine)).collect()
    assert "cgroup.limit_bytes" not in values
    assert values["cgroup.used_bytes"] > 0


def test_a_limit_above_the_machines_memory_binds_nothing() -> None:
    root = str(FIXTURES / "docker-v1")
    assert (
        "cgroup.limit_bytes" not in CgroupCollector(4711, root=root, host_bytes=3 * GIB).collect()
    )
    assert "cgroup.limit_bytes" in CgroupCollector(4711, root=root, host_bytes=5 * GIB).collect()


def test_v1_counters() -> None:
    [own] = groups("docker-v1")
    assert own.limit_bytes() == 4 * GIB
    assert own.used_bytes() == 3_900_000_000
    assert own.peak_bytes() == 4 * GIB
    assert own.oom_count() is None
    assert own.oom_kill_count() == 2
    assert own.failcnt_count() == 212
    assert own.reclaimable_bytes() == 40_960_000 + 81_920_000  # the total_ lines
    assert own.pids() == (4650, 4711)


def test_v2_counters_report_whose_limit_it_was() -> None:
    own, pod, *_ = groups("kubernetes-node-v2")
    assert (own.oom_count(), own.oom_kill_count(), own.failcnt_count()) == (0, 1, 0)
    assert (pod.oom_count(), pod.oom_kill_count(), pod.failcnt_count()) == (1, 1, 94)
    assert own.peak_bytes() is None  # memory.peak came with Linux 5.19
    assert own.limit_bytes() is None
    assert own.reclaimable_bytes() == 100_000_000


def test_a_real_kill_is_counted_below_and_its_limit_above() -> None:
    own, around, root = groups("virtual-machine-v2")
    assert (own.oom_count(), own.oom_kill_count(), own.failcnt_count()) == (0, 1, 0)
    assert (around.oom_count(), around.oom_kill_count(), around.failcnt_count()) == (1, 1, 43)
    assert (own.limit_bytes(), around.limit_bytes(), root.limit_bytes()) == (None, GIB // 16, None)
    assert own.peak_bytes() == 67_362_816
    assert own.pids() == (4711,)


def test_the_group_at_the_root_of_v2_has_no_numbers() -> None:
    root = groups("desktop-systemd-v2")[-1]
    assert root.path == "/"
    assert (root.limit_bytes(), root.used_bytes(), root.oom_kill_count()) == (None, None, None)


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / "docker-v1", tmp_path / "docker"))


def move(machine: Path, path: str) -> None:
    (machine / "proc/4711/cgroup").write_text(f"12:memory:{path}\n")


def test_file_cache_is_read_again_once_the_use_has_changed(docker: Path) -> None:
    folder = next(docker.glob("**/memory.usage_in_bytes")).parent
    before = CgroupCollector(4711, root=str(docker))
    assert before.collect()["cgroup.reclaimable_bytes"] == 40_960_000 + 81_920_000
    (folder / "memory.usage_in_bytes").write_text("3777120000\n")
    stat = (folder / "memory.stat").read_text()
    (folder / "memory.stat").write_text(
        stat.replace("_file 40960000", "_file 0").replace("_file 81920000", "_file 0")
    )
    assert before.collect()["cgroup.reclaimable_bytes"] == 0


def test_the_group_is_remembered_while_the_process_is_taken_down(docker: Path) -> None:
    collector = CgroupCollector(4711, root=str(docker))
    collector.collect()
    move(docker, "/")
    stat = docker / "proc/4711/stat"
    fields = stat.read_text().split()
    fields[8] = str(int(fields[8]) | 0x4)  # PF_EXITING
    stat.write_text(" ".join(fields))
    collector.refresh()
    assert collector.groups[0].path == "/docker/3f1c9d0e7a52b4c6"


def test_a_living_process_that_was_moved_is_followed(docker: Path) -> None:
    collector = CgroupCollector(4711, root=str(docker))
    inner = docker / "sys/fs/cgroup/memory/kernels"
    shutil.copytree(docker / "sys/fs/cgroup/memory", inner)
    (inner / "memory.limit_in_bytes").write_text(f"{GIB}\n")
    move(docker, "/docker/3f1c9d0e7a52b4c6/kernels")
    collector.refresh()
    assert [g.path for g in collector.groups] == [
        "/docker/3f1c9d0e7a52b4c6/kernels",
        "/docker/3f1c9d0e7a52b4c6",
    ]
    assert collector.collect()["cgroup.limit_bytes"] == GIB


@pytest.mark.parametrize("path", ["/elsewhere", "/../outside", "/docker/3f1c9d0e7a52b4c6x"])
def test_a_group_outside_of_what_is_mounted_is_not_guessed(docker: Path, path: str) -> None:
    move(docker, path)
    with pytest.raises(SourceUnavailable, match="not visible here"):
        memory_groups(4711, root=str(docker))


def test_a_mount_from_outside_the_namespace_is_not_used(docker: Path) -> None:
    mounts = docker / "proc/self/mountinfo"
    mounts.write_text(mounts.read_text().replace("/docker/3f1c9d0e7a52b4c6", "/.."))
    move(docker, "/")
    with pytest.raises(SourceUnavailable, match="not visible here"):
        memory_groups(4711, root=str(docker))


def test_no_memory_controller_is_said_plainly(docker: Path) -> None:
    (docker / "proc/4711/cgroup").write_text("0::/user.slice\n")
    with pytest.raises(SourceUnavailable, match="no memory controller"):
        memory_groups(4711, root=str(docker))


def test_a_removed_group_makes_its_metrics_unknown(docker: Path) -> None:
    collector = CgroupCollector(4711, root=str(docker))
    shutil.rmtree(docker / "sys")
    with pytest.raises(SourceUnavailable):
        collector.collect()
