"""What the watcher holds of a kernel's stderr, with a program in the place of the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.native_text import stderr_end
from jupyter_tfguard.watch.crash.held_stderr import HeldStderr
from jupyter_tfguard.watch.live.live_feed import LiveFeed
from jupyter_tfguard.watch.live.shared_group import SharedGroups
from jupyter_tfguard.watch.monitored import Kernel, MonitoredKernel
from tests.rigs.waiting import DEADLINE_SECONDS

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's"),
]

# Nobody reads the pipe: as while native code holds the GIL. The child outlives its parent and writes on and on.
PROGRAM = """
import os, subprocess, sys, time
source, target = os.pipe()
os.dup2(target, 2)
os.close(target)
os.write(2, b"the last words\\n")
child = subprocess.Popen(["sh", "-c", "trap '' PIPE; read line; while echo more >&2; do :; done; echo ended"], stdin=0)
print(source, os.fstat(source).st_ino, flush=True)
time.sleep(600)
"""


@contextmanager
def program() -> Iterator[tuple[subprocess.Popen[bytes], ProcessIdentity, dict[str, Any]]]:
    """The process and what a kernel's header says of its pipe."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            descriptor, inode = map(int, process.stdout.readline().split())
            identity = ProcessIdentity.of(process.pid)
            assert identity is not None
            yield process, identity, {"stderr_pipe": {"descriptor": descriptor, "inode": inode}}
        finally:
            process.kill()


def finished(held: HeldStderr, recording: Path, child_seconds: float = 0.0) -> str:
    """The text that is added to the recording after a crash."""
    before = stderr_end(PrivateFolder(recording))
    held.finish(recording, child_seconds)
    return stderr_end(PrivateFolder(recording))[len(before) :]


def test_the_last_stderr_are_read_after_a_kill_and_a_child_then_ends(tmp_path: Path) -> None:
    held = HeldStderr()
    with program() as (process, identity, claimed):
        held.hold(identity, claimed)
        process.kill()
        process.wait()
        assert finished(held, tmp_path) == "the last words\n"
        # Its next write fails, as with a bare kernel; without that it would wait for a reader.
        assert process.communicate(b"go\n", timeout=120)[0] == b"ended\n"
        assert finished(held, tmp_path) == ""


def test_what_a_child_says_after_the_death_is_kept(tmp_path: Path) -> None:
    """As Python's resource tracker does, which waits for the end of its parent."""
    says = "import os; os.read(0, 1); os.write(2, b'left behind')"
    program = (
        "import os, subprocess, sys\n"
        "source, target = os.pipe()\n"
        f"subprocess.Popen([sys.executable, '-S', '-c', {says!r}], stdin=0, stderr=target)\n"
        "print(source, os.fstat(source).st_ino, flush=True)\nos.read(source, 1)"
    )
    held, (dead, alive) = HeldStderr(), os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=dead, stdout=subprocess.PIPE
    ) as process:
        os.close(dead)
        assert process.stdout is not None
        descriptor, inode = map(int, process.stdout.readline().split())
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        held.hold(identity, {"stderr_pipe": {"descriptor": descriptor, "inode": inode}})
        process.kill()
        process.wait()
        os.close(alive)
        assert finished(held.detach(), tmp_path, DEADLINE_SECONDS) == "left behind"
        assert finished(held, tmp_path) == ""


def test_the_living_are_not_read(tmp_path: Path) -> None:
    held = HeldStderr()
    with program() as (process, identity, claimed):
        held.hold(identity, claimed)
        held.close()
        process.kill()
        process.wait()
        assert finished(held, tmp_path) == ""


@pytest.mark.parametrize("number", ["0", "same", "huge", "text", "none"])
def test_what_a_header_claims_is_checked(number: str, tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    held = HeldStderr()
    with program() as (_, identity, claimed):
        pipe = claimed["stderr_pipe"]
        forged: Any = {
            "0": pipe | {"descriptor": 0},
            "same": pipe | {"inode": pipe["inode"] + 1},
            "huge": pipe | {"descriptor": 1 << 70},
            "text": pipe | {"descriptor": "../../1/fd/0"},
            "none": [],
        }[number]
        held.hold(identity, {"stderr_pipe": forged})
        assert finished(held, tmp_path) == ""
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_kernel_that_gave_its_pipe_up_is_no_longer_held(tmp_path: Path) -> None:
    held = HeldStderr()
    with program() as (_, identity, claimed):
        held.hold(identity, claimed)
        held.hold(identity, None)
        assert finished(held, tmp_path) == ""


def test_the_stderr_of_a_new_kernel_is_held_as_soon_as_its_header_names_it(tmp_path: Path) -> None:
    with program() as (process, identity, claimed):
        monitored = MonitoredKernel(process.pid, Kernel("new"), SharedGroups())
        feed = LiveFeed(tmp_path, lambda: (monitored,))
        folder = PrivateFolder(tmp_path / identity.folder_name)
        for guard in ({"stderr_pipe": None}, claimed):
            assert not monitored.stderr.is_held
            folder.write_whole("header.json", json.dumps({"guard": guard}).encode())
            feed._round((monitored,), time.monotonic())
        assert monitored.stderr.is_held
        monitored.close()
