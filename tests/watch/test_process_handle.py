"""How real processes ended, by every way of reading it, without reaping them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.record.facts import ExitFacts
from jupyter_tfguard.watch.crash.process_handle import (
    ProcessHandle,
    from_returncode,
    is_running,
    signal_name,
)
from tests.rigs.waiting import wait_until

from .conftest import Start

WAIT = "print(flush=True); import sys; sys.stdin.read()"


def wait_for_end(handle: ProcessHandle) -> ExitFacts:
    wait_until(lambda: not handle.is_running())
    ended = handle.end()
    assert ended is not None
    return ended


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_the_signal_is_named_and_the_starter_can_still_wait(
    start: Start, number: signal.Signals
) -> None:
    process = start(WAIT)
    handle = ProcessHandle(process.pid)
    assert handle.end() is None
    process.send_signal(number)
    assert wait_for_end(handle) == ExitFacts(number.name, None, "waitid")
    assert process.wait() == -number
    handle.close()


@pytest.mark.parametrize("code", [0, 137])
def test_the_exit_code_is_reported(start: Start, code: int) -> None:
    process = start(f"print(flush=True); import os, sys; sys.stdin.read(); os._exit({code})")
    handle = ProcessHandle(process.pid)
    assert process.stdin is not None
    process.stdin.close()
    assert wait_for_end(handle) == ExitFacts(None, code, "waitid")
    process.stdin = None
    assert process.wait() == code
    handle.close()


GRANDCHILD = """
import subprocess, sys
kid = subprocess.Popen([sys.executable, "-c", "import sys, os; sys.stdin.read(); os._exit(7)"], stdin=sys.stdin)
print(kid.pid, flush=True)
kid.wait()
print("reaped", flush=True)
import time; time.sleep(60)
"""


def test_a_process_that_its_own_parent_reaped_is_read_by_pidfd() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", GRANDCHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    handle = ProcessHandle(int(parent.stdout.readline()))
    if handle.fileno() is None:
        pytest.skip("this system has no pidfd")
    parent.stdin.close()
    assert parent.stdout.readline() == b"reaped\n"
    ended = handle.end()
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release >= (6, 15):
        assert ended == ExitFacts(None, 7, "pidfd_info")
    else:
        assert ended is None
    handle.close()
    parent.kill()
    parent.stdin = None
    parent.communicate()


def test_a_living_process_has_no_end(start: Start) -> None:
    handle = ProcessHandle(start(WAIT).pid)
    assert handle.is_running()
    assert handle.end() is None
    handle.close()


def test_there_is_no_handle_for_nobody() -> None:
    with pytest.raises(SourceUnavailable):
        ProcessHandle(2**22 + 1)


def test_a_zombie_is_not_running(start: Start) -> None:
    process = start(WAIT)
    assert is_running(process.pid)
    process.kill()
    wait_until(lambda: not is_running(process.pid))
    assert process.wait() == -signal.SIGKILL


@pytest.mark.quick
def test_return_codes_of_a_starter() -> None:
    assert from_returncode(-9) == ExitFacts("SIGKILL", None, "returncode")
    assert from_returncode(3) == ExitFacts(None, 3, "returncode")


@pytest.mark.quick
def test_signals_without_a_name_are_numbered() -> None:
    assert signal_name(signal.SIGRTMIN + 3) == "SIGRTMIN+3"
    assert signal_name(33) == "signal 33"
