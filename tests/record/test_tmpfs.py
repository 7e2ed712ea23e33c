"""A real kernel whose disk fills up, becomes read-only or is deleted, or that has no descriptors left: it goes on, and says so."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A small file system where the kernel's data folder goes: 1 MiB, or as many KiB as the test says."""
    kib = getattr(request, "param", 1024)
    path = tmp_path / "tfguard"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def free_bytes(path: Path) -> int:
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def lives(kernel: GuardedKernel) -> None:
    """It computes, prints natively, forks, fails in the user's way, and samples go on or are given up."""
    assert kernel.run("6 * 7").result == "42"
    native = kernel.run("import os; _ = os.write(2, b'native words\\n')")
    assert (native.error, native.stderr) == (None, "native words\n")
    forked = kernel.run(
        "pid = os.fork()\nif pid == 0:\n    os._exit(0)\nprint(os.waitpid(pid, 0)[1])"
    )
    assert forked.stdout == "0\n"
    assert kernel.run("1 / 0").error == "ZeroDivisionError"


def end(kernel: GuardedKernel) -> None:
    process = kernel.manager.provisioner.process
    kernel.shutdown()
    assert process.wait(DEADLINE_SECONDS) == 0  # and no signal


def told(kernel: GuardedKernel) -> str:
    status = kernel.run("%tfguard status")
    assert status.error is None
    return status.stdout


@pytest.mark.parametrize("disk", [4096], indirect=True)
def test_a_disk_that_user_code_fills_up(disk: Path, tmp_path: Path) -> None:
    with guarded_kernel(tmp_path) as kernel:
        kernel.run("1")
        before = kernel.recording()
        fill = f"""
import os
with open({str(disk / "mine")!r}, 'wb', buffering=0) as file:
    try:
        while True:
            file.write(b'x' * 4096)
    except OSError as full:
        print(full.errno)
"""
        assert kernel.run(fill).stdout == "28\n"
        assert free_bytes(disk) == 0
        lives(kernel)
        # What was taken beforehand goes on: every event, every sample.
        wait_until(
            lambda: kernel.recording().samples[-1].time > before.samples[-1].time + 2,
            "samples on the full disk",
        )
        now = kernel.recording()
        assert len([e for e in now.events if e["kind"] == "cell_start"]) >= 6
        assert now.stderr_tail == ""
        assert "Problem: The stderr tail is no longer recorded: No space left on device." in told(
            kernel
        )
        os.unlink(disk / "mine")
        lives(kernel)
        end(kernel)


def test_a_disk_that_is_full_before_the_kernel_starts(disk: Path, tmp_path: Path) -> None:
    (disk / "mine").write_bytes(b"x" * free_bytes(disk))
    with guarded_kernel(tmp_path) as kernel:
        lives(kernel)
        assert "Problem:" in told(kernel)
        end(kernel)


def test_a_disk_that_is_taken_away(disk: Path, tmp_path: Path) -> None:
    """The mount goes, as a session's own folder goes at logout; another, read-only one takes its place."""
    with guarded_kernel(tmp_path) as kernel:
        kernel.run("1")
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(disk)], check=True)
        lives(kernel)
        lives(kernel)
        end(kernel)


def test_a_data_folder_that_is_deleted_under_a_running_kernel(tmp_path: Path) -> None:
    with guarded_kernel(tmp_path) as kernel:
        kernel.run("1")
        shutil.rmtree(tmp_path / "tfguard")
        lives(kernel)
        kernel.run("import time; time.sleep(1.2)")
        lives(kernel)
        assert "Problem:" in told(kernel)
        end(kernel)


def test_user_code_that_takes_all_descriptors(tmp_path: Path) -> None:
    """A real EMFILE, in the user's own cell; what the guard records meanwhile waits for a free one."""
    take = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
taken = []
try:
    while True:
        taken.append(os.open('/dev/null', os.O_RDONLY))
except OSError as full:
    print(full.errno)
os.write(2, b'words ' * 200)
time.sleep(1.5)
"""
    with guarded_kernel(tmp_path) as kernel:
        # Without descriptors IPython's own history says so, into whichever cell is running.
        kernel.run("get_ipython().history_manager.enabled = False")
        ran = kernel.run(take)
        assert (ran.error, ran.stdout) == (None, f"{errno.EMFILE}\n")
        assert kernel.run("2 + 2").result == "4"
        assert (
            kernel.run("[os.close(number) for number in taken]; len(taken) > 50").result == "True"
        )
        contents = kernel.recording()
        starts = [event for event in contents.events if event["kind"] == "cell_start"]
        assert len(starts) == 4
        # A sample of that time waits for the next one.
        wait_until(
            lambda: kernel.recording().samples[-1].time > starts[2]["t"], "samples after that"
        )
        end(kernel)
