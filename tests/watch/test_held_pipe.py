"""The watcher's copy of a kernel's stderr pipe, with a program in the place of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.watch.held_pipe import HeldPipe
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
            yield process, identity, {"descriptor": descriptor, "inode": inode}
        finally:
            process.kill()


def test_the_last_words_are_read_after_a_kill_and_a_child_then_ends() -> None:
    held = HeldPipe()
    with program() as (process, identity, claimed):
        held.hold(identity, claimed)
        process.kill()
        process.wait()
        assert held.last_words() == b"the last words\n"
        # Its next write fails, as with a bare kernel; without that it would wait for a reader.
        assert process.communicate(b"go\n", timeout=120)[0] == b"ended\n"
        assert held.last_words() == b""


def test_what_a_child_says_after_the_death_is_kept() -> None:
    """As Python's resource tracker does, which waits for the end of its parent."""
    says = "import os; os.read(0, 1); os.write(2, b'left behind')"
    program = (
        "import os, subprocess, sys\n"
        "source, target = os.pipe()\n"
        f"subprocess.Popen([sys.executable, '-S', '-c', {says!r}], stdin=0, stderr=target)\n"
        "print(source, os.fstat(source).st_ino, flush=True)\nos.read(source, 1)"
    )
    held, (dead, alive) = HeldPipe(), os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=dead, stdout=subprocess.PIPE
    ) as process:
        os.close(dead)
        assert process.stdout is not None
        descriptor, inode = map(int, process.stdout.readline().split())
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        held.hold(identity, {"descriptor": descriptor, "inode": inode})
        process.kill()
        process.wait()
        os.close(alive)
        assert held.detach().last_words(DEADLINE_SECONDS) == b"left behind"
        assert held.last_words() == b""


def test_the_living_are_not_read() -> None:
    held = HeldPipe()
    with program() as (process, identity, claimed):
        held.hold(identity, claimed)
        held.close()
        process.kill()
        process.wait()
        assert held.last_words() == b""


@pytest.mark.parametrize("number", ["0", "same", "huge", "text", "none"])
def test_what_a_header_claims_is_checked(number: str) -> None:
    before = set(os.listdir("/proc/self/fd"))
    held = HeldPipe()
    with program() as (_, identity, claimed):
        forged: Any = {
            "0": claimed | {"descriptor": 0},
            "same": claimed | {"inode": claimed["inode"] + 1},
            "huge": claimed | {"descriptor": 1 << 70},
            "text": claimed | {"descriptor": "../../1/fd/0"},
            "none": [],
        }[number]
        held.hold(identity, forged)
        assert held.last_words() == b""
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_kernel_that_gave_its_pipe_up_is_no_longer_held() -> None:
    held = HeldPipe()
    with program() as (_, identity, claimed):
        held.hold(identity, claimed)
        held.hold(identity, None)
        assert held.last_words() == b""
