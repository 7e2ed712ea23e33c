"""What a process wrote to fd 2 just before it ended is recorded and reaches its destination, once and in order."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.late_stderr import POSITION, finish, wait_for_lock, wait_until_finished
from jupyter_tfguard.record.native_text import stderr_end
from tests.conftest import without_pytest
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(sys.platform != "linux", reason="the helper is for Linux"),
]

HEAD = """
import ctypes, os, signal, subprocess, sys, time
from pathlib import Path
from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.late_stderr_helper import LateStderrHelper
from jupyter_tfguard.record.stderr_tail import StderrTail
tail = StderrTail(PrivateFolder(Path(sys.argv[1])), print)
tail.start()
helper = LateStderrHelper(Path(sys.argv[1]), tail.shared, print)
helper.start()
helper.begin()
helper._thread.join()
holding = ctypes.PyDLL(None)
def write(text):
    holding.write(2, text, len(text))
"""


class Destination:
    """A pipe in place of the terminal."""

    def __init__(self) -> None:
        self.source, self.target = os.pipe()

    def text(self) -> bytes:
        """What was written to it."""
        os.set_blocking(self.source, False)
        try:
            return os.read(self.source, 1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends."""
        os.close(self.source)
        os.close(self.target)


def test_the_rest_of_file_and_pipe_is_forwarded_and_recorded_once(tmp_path: Path) -> None:
    folder = PrivateFolder(tmp_path)
    folder.write_whole("stderr.3.txt", b"sent not sent\n")
    position = os.memfd_create("position")
    os.pwrite(position, POSITION.pack(1000, len("sent ")), 0)
    source, target = os.pipe()
    os.write(target, b"left in the pipe\n")
    opened, terminal = os.open(tmp_path, os.O_RDONLY), Destination()
    for _ in range(2):
        finish(opened, source, position, terminal.target)
    assert terminal.text() == b"not sent\nleft in the pipe\n"
    assert stderr_end(folder) == "sent not sent\nleft in the pipe\n"
    for descriptor in (position, source, target, opened):
        os.close(descriptor)
    terminal.close()


def test_a_reader_of_the_recording_waits_for_the_helper(tmp_path: Path) -> None:
    helper = os.open(tmp_path, os.O_RDONLY)
    wait_for_lock(helper)
    order = []
    reader = threading.Thread(target=lambda: (wait_until_finished(tmp_path), order.append("read")))
    reader.start()
    assert not order
    order.append("written")
    os.close(helper)
    reader.join(DEADLINE_SECONDS)
    assert order == ["written", "read"]
    wait_until_finished(tmp_path / "none")


def test_text_is_recorded_where_nobody_reads_what_is_forwarded(tmp_path: Path) -> None:
    source, target = os.pipe()
    os.write(target, b"left in the pipe\n")
    opened, terminal = os.open(tmp_path, os.O_RDONLY), Destination()
    os.set_blocking(terminal.target, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(terminal.target, b"x" * 4096)
    finish(opened, source, -1, terminal.target)
    assert stderr_end(PrivateFolder(tmp_path)) == "left in the pipe\n"
    finish(None, source, -1, -1)
    for descriptor in (source, target, opened):
        os.close(descriptor)
    terminal.close()


def run(folder: Path, body: str, stderr: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Run a program with a helper; returns when nothing holds its stderr any more."""
    program = HEAD + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
        env=without_pytest(os.environ),
    )


ENDS = ["holding.abort()", "holding.kill(os.getpid(), signal.SIGKILL)"]
LINES = "".join(f"line {number}\n" for number in range(400))


@pytest.mark.parametrize("end", ENDS, ids=["abort", "SIGKILL"])
def test_nothing_is_lost_or_repeated_while_the_gil_is_held(tmp_path: Path, end: str) -> None:
    ran = run(
        tmp_path,
        f"""
        for number in range(400):
            write(b"line %d\\n" % number)
            if number in (100, 200, 300):
                time.sleep(0.02)  # some of the text is forwarded
        {end}
        """,
    )
    assert ran.returncode < 0
    assert ran.stdout == ""
    assert ran.stderr == LINES
    assert stderr_end(PrivateFolder(tmp_path)) == LINES


@pytest.mark.parametrize("flags", [os.O_APPEND, 0], ids=["appended", "written"])
def test_a_file_gets_everything_too(tmp_path: Path, flags: int) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | flags)
    run(
        tmp_path / "recording",
        f"write(b'early\\n'); tail.wait_forwarded(9); write(b'late\\n'); {ENDS[1]}",
        log,
    )
    os.close(log)
    wait_until(lambda: (tmp_path / "log").read_text() == "early\nlate\n", "the text in the log")


def test_a_child_that_goes_on_is_heard_shortly_and_holds_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        f"""
        subprocess.Popen(["sh", "-c", "trap '' PIPE; while echo more >&2; do sleep 0.05; done"], stdout=2)
        {ENDS[1]}
        """,
    )
    assert ran.returncode < 0
    assert set(ran.stderr.split()) <= {"more"}


def test_the_helper_is_dismissed_and_is_no_child(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        try:
            print(os.waitpid(-1, os.WNOHANG))
        except ChildProcessError:
            print("no child")
        helper.stop()
        tail.stop()
        write(b"to the old one\\n")
        """,
    )
    assert (ran.stdout, ran.stderr) == ("no child\n", "to the old one\n")


def test_a_helper_that_cannot_start_is_reported(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        from jupyter_tfguard.record import late_stderr_helper
        late_stderr_helper._COMMAND = ("/none/sh",)
        other = LateStderrHelper(Path(sys.argv[1]), tail.shared, print)
        other.start()
        other.begin()
        other._thread.join()
        other.stop(), helper.stop(), tail.stop()
        """,
    )
    assert ran.stdout == (
        "Could not start the process that forwards the last native text of a crash: No such file or directory.\n"
    )
