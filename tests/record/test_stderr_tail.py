"""What is written to fd 2 is kept and forwarded, in programs that do nothing else; deaths are in test_late_stderr_rig.py."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.native_text import FILE_BYTES, native_text_since, stderr_end
from tests.conftest import without_pytest

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows"),
]

HEAD = """
import errno, os, resource, subprocess, sys
from pathlib import Path
from jupyter_tfguard.private_files import PrivateFolder
from jupyter_tfguard.record.stderr_tail import StderrTail
problems = []
before = os.fstat(2)
tail = StderrTail(PrivateFolder(Path(sys.argv[1])), problems.append)
def write(text):
    while text:
        text = text[os.write(2, text):]
"""
LINES = b"".join(b"line %010d\n" % n for n in range(3 * FILE_BYTES // 16))


def run(folder: Path, body: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program whose old fd 2 is a pipe to us; HEAD makes `tail` and does not start it."""
    program = HEAD + textwrap.dedent(body)
    command = [sys.executable, "-W", "error", "-c", program, str(folder)]
    return subprocess.run(
        command, capture_output=True, timeout=120, check=True, env=without_pytest(os.environ)
    )


REFUSED = """
def refused(*arguments, **more):
    raise OSError(errno.EINVAL, "this file system cannot")
os.splice = refused
"""


@pytest.mark.parametrize("change", ["", REFUSED], ids=["", "without splice"])
def test_all_is_forwarded_in_order_and_the_last_mebibyte_is_kept(
    tmp_path: Path, change: str
) -> None:
    ran = run(
        tmp_path,
        change
        + f"""
tail.start()
write(b"".join(b"line %010d\\n" % n for n in range({3 * FILE_BYTES // 16})))
tail.wait_forwarded(60)
print(tail.written(), problems)
""",
    )
    assert ran.stderr == LINES
    assert ran.stdout.decode() == f"{len(LINES)} []\n"
    folder = PrivateFolder(tmp_path)
    kept = native_text_since(folder, 0).encode()
    assert FILE_BYTES <= len(kept) <= 2 * FILE_BYTES
    assert LINES.endswith(kept)
    assert native_text_since(folder, len(LINES) - 20).encode() == LINES[-20:]
    assert LINES.endswith(stderr_end(folder).encode())


def test_a_place_is_where_the_next_text_goes(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        from jupyter_tfguard.record.native_text import native_text_since
        tail.start()
        write(b"of the cell before\\n")
        place = tail.written()
        write(b"of this cell\\n")
        tail.wait_forwarded(60)
        print(native_text_since(tail._folder, place))
        """,
    )
    assert ran.stdout == b"of this cell\n\n"


def test_a_file_that_cannot_grow_is_left_and_text_is_forwarded_all_the_same(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        tail.start()
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        for n in range(3000):
            write(b"line %03d\\n" % n)
        tail.wait_forwarded(60)
        print(problems, tail.running)
        """,
    )
    assert ran.stderr == b"".join(b"line %03d\n" % n for n in range(3000))
    assert ran.stdout == b"['The stderr tail is no longer recorded: File too large.'] False\n"


def test_fd_2_is_left_alone_where_files_may_not_be_long_enough(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        try:
            tail.start()
        except Exception as bad:
            print(bad)
        print(os.path.samestat(os.fstat(2), before), os.listdir(sys.argv[1]))
        """,
    )
    assert ran.stdout.decode().splitlines() == [
        "The stderr tail is not recorded: `ulimit -f` limits files to 8 KiB, and the recording needs 1024 KiB.",
        "True []",
    ]


@pytest.mark.parametrize("size", [100, 2 * FILE_BYTES])
def test_a_file_of_the_users_with_our_number_is_not_written_to(tmp_path: Path, size: int) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    ran = run(
        tmp_path / "ours",
        f"""
        tail.start()
        os.closerange(3, 100)
        files = [os.open(Path({str(theirs)!r}) / str(n), os.O_RDWR | os.O_CREAT) for n in range(30)]
        try:
            for n in range(20):
                write(b"x" * {size // 20})
        except BrokenPipeError:  # as in a bare kernel, which loses its reader too
            pass
        print(sum(os.fstat(file).st_size for file in files))
        tail.stop()
        """,
    )
    assert ran.stdout == b"0\n"


def test_stop_puts_the_old_one_back_and_a_child_keeps_its_reader(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        tail.start()
        child = subprocess.Popen(["sh", "-c", "read line; echo by the child >&2"], stdin=subprocess.PIPE)
        write(b"before\\n")
        tail.stop()
        print(os.path.samestat(os.fstat(2), before))
        child.communicate(b"go\\n")
        tail._thread.join(60)
        write(b"after\\n")
        print(tail._thread.is_alive(), problems)
        """,
    )
    assert ran.stdout == b"True\nFalse []\n"
    assert ran.stderr == b"before\nby the child\nafter\n"


def test_stop_leaves_what_user_code_made_of_fd_2(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        tail.start()
        os.dup2(1, 2)
        tail.stop()
        os.write(2, b"to stdout\\n")
        """,
    )
    assert (ran.stdout, ran.stderr) == (b"to stdout\n", b"")


def test_a_forked_child_keeps_only_fd_2(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        fds = lambda: sorted(os.listdir("/dev/fd"))
        ours = fds()
        tail.start()
        os.register_at_fork(after_in_child=tail.leave_child)
        pid = os.fork()
        if not pid:
            write(b"by the child\\n")
            print(fds() == ours, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        tail.wait_forwarded(60)
        """,
    )
    assert (ran.stdout, ran.stderr) == (b"True\n", b"by the child\n")
