"""A data folder on a real FUSE file system: kernels write to a local disk, the server copies, every death is told once."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard import mounts
from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from tests.conftest import private_jupyter
from tests.crash.conftest import Kernel, RecordingServer
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bindfs") is None,
    reason="needs bindfs, a file system in a program",
)


class Remote:
    """A folder that a program answers for."""

    def __init__(self, around: Path) -> None:
        self.path = around / "remote"
        self.path.mkdir()
        (around / "behind").mkdir()
        command = ["bindfs", "-f", "--no-allow-other", str(around / "behind"), str(self.path)]
        self.program = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        ends = time.monotonic() + DEADLINE_SECONDS
        while not os.path.ismount(self.path):
            if self.program.poll() is not None or time.monotonic() > ends:
                self.program.kill()
                self.program.wait()
                pytest.skip("no FUSE here")
            time.sleep(0.02)

    def hangs(self, yes: bool) -> None:
        self.program.send_signal(signal.SIGSTOP if yes else signal.SIGCONT)

    def close(self) -> None:
        self.hangs(False)
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)
        self.program.wait(DEADLINE_SECONDS)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Remote]:
    made = Remote(tmp_path)
    yield made
    made.close()


@pytest.fixture
def remote(program: Remote) -> Path:
    return program.path


@pytest.fixture
def server(remote: Path, tmp_path: Path) -> Iterator[RecordingServer]:
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    with private_jupyter(tmp_path / "home", TFGUARD_DIR=remote / "tfguard", XDG_RUNTIME_DIR=run):
        made = RecordingServer(tmp_path / "work", remote / "tfguard")
        yield made
        made.stop()


def recordings(folder: Path) -> list[str]:
    # Unlike a glob, a walk passes over a folder that is removed meanwhile.
    return sorted(Path(path).name for path, _, files in os.walk(folder) if "header.json" in files)


def read_copy(path: Path) -> RecordingContents:
    """A copy while it is updated: on FUSE, a file that is replaced does not exist for a moment (4 of 100 looks)."""

    def look() -> RecordingContents | None:
        with contextlib.suppress(RecordUnreadable):
            return read_recording(path)
        return None

    return wait_until(look, "a readable copy")


def test_every_death_is_reported_once_from_the_local_recording(
    server: RecordingServer, remote: Path, tmp_path: Path
) -> None:
    assert mounts.is_remote(remote)
    kernel = Kernel(server, "remote")
    kernel.run("x = 1")
    name = f"{kernel.pid}-"
    live, copies = tmp_path / "run", remote / "tfguard" / "recordings"
    assert [found for found in recordings(live) if found.startswith(name)]
    wait_until(lambda: recordings(copies) == recordings(live), "no copy was made")
    (original,) = (path.parent for path in live.rglob("header.json"))
    copy = copies / original.name
    count = len(read_recording(original).samples)
    wait_until(lambda: len(read_copy(copy).samples) >= count, "the copy did not catch up")
    theirs = read_copy(copy)
    assert theirs.events == read_recording(original).events[: len(theirs.events)]
    kernel.sleep()
    os.kill(kernel.pid, signal.SIGKILL)
    report = kernel.report()
    assert report["cause"] == "sigkill_unattributed"
    assert any("time.sleep(100)" in row["value"] for row in report["activity"])
    # The server starts the kernel again, which makes a recording of its own.
    wait_until(
        lambda: original.name not in recordings(live) + recordings(copies), "a recording was left"
    )
    assert len(kernel.entries()) == 1
    kernel.close()


def test_a_kernel_that_ends_in_an_orderly_way_leaves_nothing(
    server: RecordingServer, remote: Path, tmp_path: Path
) -> None:
    kernel = Kernel(server, "orderly")
    kernel.run("x = 1")
    copies = remote / "tfguard" / "recordings"
    wait_until(lambda: recordings(copies), "no copy was made")
    kernel.close()
    wait_until(
        lambda: not recordings(tmp_path / "run") + recordings(copies), "a recording was left"
    )


def test_a_file_system_that_hangs_stops_no_cell(
    server: RecordingServer, program: Remote, tmp_path: Path
) -> None:
    kernel = Kernel(server, "hangs")
    copies = program.path / "tfguard" / "recordings"
    kernel.run("import os")
    wait_until(lambda: recordings(copies), "no copy was made")
    program.hangs(True)
    try:
        for count in range(20):
            assert kernel.run(f"_ = os.write(2, b'words'); {count}", timeout=120)["status"] == "ok"
        time.sleep(1.5)
        (original,) = (path.parent for path in (tmp_path / "run").rglob("header.json"))
        ours = read_recording(original)
        assert len([event for event in ours.events if event["kind"] == "cell_start"]) == 21
    finally:
        program.hangs(False)
    wait_until(
        lambda: read_copy(copies / original.name).events == read_recording(original).events,
        "the copy did not catch up",
    )
    kernel.close()
