"""What child processes hold by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from jupyter_tfguard.guard.children import Child, children_of, name_of, text
from jupyter_tfguard.units import MIB

pytestmark = pytest.mark.quick

# A process with 64 MiB forks a child that adds 32 MiB of its own, and starts a program that holds 16 MiB.
PARENT = """
import os, subprocess, sys
shared = bytearray(b"x") * (64 << 20)
hold = "import sys; own = bytearray(b'x') * (16 << 20); print(flush=True); sys.stdin.read()"
program = subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
program.stdout.readline()
ready, wake = os.pipe()
child = os.fork()
if child == 0:
    own = bytearray(b"x") * (32 << 20)
    os.write(wake, b"x")
    sys.stdin.read()
    os._exit(0)
os.read(ready, 1)
print(child, flush=True)
sys.stdin.read()
program.kill()
os.kill(child, 9)
"""


def test_a_page_shared_with_a_forked_child_is_not_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        forked = int(parent.stdout.readline())
        found = {one.pid: one for one in children_of(parent.pid)}
        parent.stdin.close()
    assert len(found) == 2
    worker = found.pop(forked)
    assert worker.is_worker
    assert 32 * MIB <= worker.bytes < 48 * MIB
    (program,) = found.values()
    assert 16 * MIB <= program.bytes < 40 * MIB
    assert program.name == os.path.basename(sys.executable)
    assert not program.is_worker


def test_a_worker_that_has_just_been_killed_is_named_as_one() -> None:
    forked = os.fork()
    if forked == 0:
        signal.pause()
    program = subprocess.Popen(["sleep", "600"])
    try:
        for pid in (forked, program.pid):
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert name_of(forked, os.getpid()) == "worker"
        assert name_of(program.pid, os.getpid()) == "sleep"
    finally:
        os.waitpid(forked, 0)
        program.wait()


def test_no_children_is_an_empty_answer() -> None:
    assert children_of(2**30) == ()


def test_one_child_is_one() -> None:
    assert (
        text([Child(7, "bash", 3 * MIB)], 9 * MIB)
        == "A child process (bash, process 7) holds 3 MiB by itself."
    )
