"""The doctor before machines with limits of every kind, made of the files in which an OS kernel tells them."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from jupyter_tfguard.doctor.check import CheckResult, Status
from jupyter_tfguard.doctor.checks import memory_limit, process_limits, shared_memory
from jupyter_tfguard.doctor.environment import Environment
from tests.rigs.made_machine import MadeMachine

pytestmark = pytest.mark.quick
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def made(tmp_path: Path) -> MadeMachine:
    return MadeMachine(tmp_path)


def copy_of(name: str, made: MadeMachine) -> Environment:
    """A machine of the fixtures, as the process that lives in it sees it."""
    shutil.copytree(FIXTURES / name, made.root, dirs_exist_ok=True)
    shutil.copy(made.path("/proc/4711/cgroup"), made.path("/proc/self/cgroup"))
    return made.environment()


# --- shared memory


@pytest.mark.parametrize(
    ("options", "status", "word"),
    [
        ("rw,size=65536k", Status.WARNING, "64 MiB"),
        ("rw,size=8g", Status.OK, "8.00 GiB"),
        ("rw", Status.OK, "no size of its own"),
    ],
)
def test_the_size_of_shared_memory(
    made: MadeMachine, monkeypatch: pytest.MonkeyPatch, options: str, status: Status, word: str
) -> None:
    monkeypatch.setattr("os.statvfs", lambda path: SimpleNamespace(f_bavail=1, f_blocks=1))
    made.path("/dev/shm").mkdir(parents=True)
    mounts = (
        f"22 1 0:5 / / rw - ext4 /dev/vda rw\n25 22 0:23 / /dev/shm rw - tmpfs tmpfs {options}\n"
    )
    made.write("/proc/self/mountinfo", mounts)
    found = shared_memory.check(made.environment())
    assert found is not None
    assert (found.status, word in found.text) == (status, True), found
    assert (found.fix is None) == (status is Status.OK)


def test_shared_memory_that_is_nearly_full_is_a_warning(
    made: MadeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.statvfs", lambda path: SimpleNamespace(f_bavail=7, f_blocks=100))
    made.path("/dev/shm").mkdir(parents=True)
    made.write("/proc/self/mountinfo", "25 22 0:23 / /dev/shm rw - tmpfs tmpfs rw\n")
    found = shared_memory.check(made.environment())
    assert found is not None
    assert found.status is Status.WARNING
    assert found.text.startswith("93% of /dev/shm is in use")


def test_shared_memory_of_a_container_is_enlarged_from_outside(made: MadeMachine) -> None:
    made.path("/dev/shm").mkdir(parents=True)
    made.write("/.dockerenv", "")
    made.write("/proc/self/mountinfo", "9 1 0:5 / /dev/shm rw - tmpfs shm rw,size=65536k\n")
    found = shared_memory.check(made.environment())
    assert found is not None
    assert found.fix == "docker run --shm-size=2g ..."


def test_no_shared_memory_at_all(made: MadeMachine) -> None:
    found = shared_memory.check(made.environment())
    assert found is not None
    assert found.status is Status.WARNING


# --- limits of processes

HEAD = "Limit                     Soft Limit           Hard Limit           Units     \n"


def limits(made: MadeMachine, **given: str) -> list[CheckResult]:
    values = {"processes": "94997", "file_size": "unlimited", "address_space": "unlimited"} | given
    lines = [
        f"Max {name.replace('_', ' '):<21} {value:<20} unlimited            x\n"
        for name, value in values.items()
    ]
    made.write("/proc/self/limits", HEAD + "".join(lines))
    found = process_limits.check(made.environment())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "value", "status", "word"),
    [
        ("processes", "94997", Status.OK, "no limit"),
        ("processes", "500", Status.WARNING, "500 threads"),
        ("file_size", str(100 * 1024), Status.PROBLEM, "SIGXFSZ"),
        ("file_size", str(100 * 1024**2), Status.WARNING, "100 MiB"),
        ("file_size", str(1024**4), Status.OK, "no limit"),
        ("address_space", str(32 * 1024**3), Status.WARNING, "32.0 GiB"),
    ],
)
def test_a_limit_is_named_with_its_size(
    made: MadeMachine, name: str, value: str, status: Status, word: str
) -> None:
    (found,) = limits(made, **{name: value})
    assert (found.status, word in found.text) == (status, True), found
    assert (found.fix is None) == (status is Status.OK)


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_thread_limit_of_the_groups_counts(made: MadeMachine, version: int) -> None:
    top = "sys/fs/cgroup/pids" if version == 1 else "sys/fs/cgroup"
    line = "8:pids:/docker/1f\n" if version == 1 else "0::/docker/1f\n"
    made.write("/proc/self/cgroup", line)
    made.write(f"/{top}/docker/1f/pids.max", "max\n")
    made.write(f"/{top}/docker/pids.max", "256\n")
    (found,) = limits(made)
    assert found.status is Status.WARNING
    assert "256 threads" in found.text
    made.write(f"/{top}/docker/pids.max", "4096\n")
    assert limits(made)[0].status is Status.OK
    made.write(f"/{top}/docker/pids.current", "4000\n")
    assert "4000 of at most 4096" in limits(made)[0].text


def test_limits_that_cannot_be_read_are_unknown(made: MadeMachine) -> None:
    (found,) = process_limits.check(made.environment()) or []
    assert found.status is Status.UNKNOWN


# --- memory


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("docker-v1", Status.OK, ["allowed", "62.8 GiB"]),
        ("container-v2-namespace", Status.OK, ["allowed"]),
        ("kubernetes-node-v2", Status.WARNING, ["7.45 GiB of 8.00 GiB allowed"]),
        ("desktop-systemd-v2", Status.OK, ["only the machine's memory, 15.5 GiB"]),
    ],
)
def test_the_limit_that_binds_is_reported(
    made: MadeMachine, name: str, status: Status, words: list[str]
) -> None:
    found = memory_limit.check(copy_of(name, made))
    assert found is not None
    assert found.status is status, found
    assert all(word in found.text for word in words), found


def test_a_limit_that_is_nearly_used_up_is_a_warning(made: MadeMachine) -> None:
    machine = copy_of("docker-v1", made)
    group = made.path("/sys/fs/cgroup/memory")
    (group / "memory.usage_in_bytes").write_text((group / "memory.limit_in_bytes").read_text())
    (group / "memory.stat").write_text("total_active_file 0\ntotal_inactive_file 0\n")
    made.write("/.dockerenv")
    found = memory_limit.check(machine)
    assert found is not None
    assert found.status is Status.WARNING
    assert found.fix == "docker run --memory=8g ..."


def test_a_group_that_cannot_be_seen_is_unknown(made: MadeMachine) -> None:
    found = memory_limit.check(made.environment())
    assert found is not None
    assert found.status is Status.UNKNOWN


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_what_is_of_linux_falls_away_elsewhere(made: MadeMachine, system: str) -> None:
    elsewhere = made.environment(system=system)
    assert shared_memory.check(elsewhere) is None
    assert process_limits.check(elsewhere) is None
    assert memory_limit.check(elsewhere) is None
