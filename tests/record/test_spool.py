"""The last native words: complete on the way to the old fd 2, whole in the file, and gone without a trace."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.record import spool as spool_module
from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.spool import FILE_LIMIT_BYTES, StderrSpool

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")

HEAD = """
import ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path
from jupyter_tfguard.record import spool as spool_module
from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.spool import StderrSpool
problems = []
spool = StderrSpool(PrivateFolder(Path(sys.argv[1])), problems.append)
"""


def program(folder: Path, body: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-c", HEAD + textwrap.dedent(body), str(folder)]


def run(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose old fd 2 is a pipe to us, as ipykernel's is to itself."""
    return subprocess.run(program(folder, body), capture_output=True, text=True, timeout=60)


def kept(folder: Path) -> str:
    """What lies in the files, oldest first."""
    paths = sorted(folder.glob("stderr.*.txt"), key=lambda path: int(path.name.split(".")[1]))
    return "".join(path.read_text() for path in paths)


def test_everything_arrives_in_order_while_the_file_is_changed_many_times(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        for number in range(30_000):
            os.write(2, b"line %06d of native text\\n" % number)
        spool.stop()
        """,
    )
    assert ran.stderr == "".join(f"line {n:06d} of native text\n" for n in range(30_000))
    names = sorted(path.name for path in tmp_path.glob("stderr.*"))
    assert len(names) == spool_module.FILES_KEPT  # 780 KB went through them
    assert kept(tmp_path).endswith("line 029999 of native text\n")


def test_two_threads_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        def flood(letter):
            for number in range(8000):
                os.write(2, b"%s%06d\\n" % (letter, number))
        threads = [threading.Thread(target=flood, args=(letter,)) for letter in (b"a", b"b")]
        [t.start() for t in threads]; [t.join() for t in threads]
        spool.stop()
        """,
    )
    lines = ran.stderr.splitlines()
    assert [line for line in lines if line[0] == "a"] == [f"a{n:06d}" for n in range(8000)]
    assert [line for line in lines if line[0] == "b"] == [f"b{n:06d}" for n in range(8000)]


def test_the_last_words_before_a_kill_are_whole(tmp_path: Path) -> None:
    body = """
        spool.start()
        os.write(2, b"F tensorflow/core: the last words" * 100 + b"END\\n")
        os.kill(os.getpid(), signal.SIGKILL)
        """
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        ran = run(folder, body)
        assert ran.returncode == -signal.SIGKILL
        assert kept(folder) == "F tensorflow/core: the last words" * 100 + "END\n"


def test_the_last_words_survive_while_native_code_holds_the_gil(tmp_path: Path) -> None:
    # One megabyte through a C call that never lets the interpreter go: more than any pipe holds.
    ran = run(
        tmp_path,
        """
        spool.start()
        write = ctypes.PyDLL(None).write
        for number in range(20_000):
            write(2, b"with the GIL held, line %06d..............\\n" % number, 45)
        os.abort()
        """,
    )
    assert ran.returncode == -signal.SIGABRT
    assert "line 019999" in kept(tmp_path)


def test_children_write_through_it_and_are_followed_after_the_file_changed(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        child = subprocess.Popen(["sh", "-c", "echo early >&2; read x; echo late >&2"], stdin=subprocess.PIPE)
        time.sleep(0.3)
        for number in range(4000):
            os.write(2, b"%040d\\n" % number)
        time.sleep(0.2)
        child.communicate(b"\\n")
        time.sleep(0.3)
        spool.stop()
        """,
    )
    lines = ran.stderr.splitlines()
    assert lines[0] == "early"
    assert "late" in lines
    assert len(lines) == 4002


def test_a_child_that_empties_the_file_loses_nobody_elses_text(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"before, a line that is longer than the child's\\n")
        time.sleep(0.2)
        subprocess.run("echo child > /dev/stderr", shell=True)
        time.sleep(0.2)
        os.write(2, b"after\\n")
        spool.stop()
        """,
    )
    assert ran.stderr == "before, a line that is longer than the child's\nchild\nafter\n"


def test_a_child_that_empties_the_file_and_writes_more_is_noticed(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"short\\n")
        time.sleep(0.2)
        subprocess.run("echo a much longer line than there was > /dev/stderr", shell=True)
        time.sleep(0.2)
        spool.stop()
        """,
    )
    assert ran.stderr == "short\na much longer line than there was\n"


def test_what_a_child_has_written_long_ago_is_given_back_to_the_disk(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        child = subprocess.Popen("head -c 6000000 /dev/zero >&2; sleep 0.5; echo end >&2; sleep 0.5", shell=True)
        time.sleep(0.1)
        held = os.open(Path(sys.argv[1]) / "stderr.0.txt", os.O_RDONLY)
        child.wait()
        time.sleep(0.2)
        found = os.fstat(held)
        print(found.st_size, found.st_blocks * 512)
        spool.stop()
        """,
    )
    size, on_disk = map(int, ran.stdout.split())
    assert size == 6_000_004
    assert on_disk < 3_000_000
    assert ran.stderr.endswith("end\n")
    assert len(ran.stderr) == size


def test_stopping_puts_the_old_descriptor_back(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        before = os.readlink("/proc/self/fd/2"), sorted(os.listdir("/proc/self/fd"))
        spool.start()
        assert os.readlink("/proc/self/fd/2").endswith("stderr.0.txt")
        spool.stop()
        assert (os.readlink("/proc/self/fd/2"), sorted(os.listdir("/proc/self/fd"))) == before
        os.write(2, b"direct\\n")
        assert not [t for t in threading.enumerate() if "tfguard" in t.name]
        """,
    )
    assert (ran.returncode, ran.stderr) == (0, "direct\n")


def test_a_descriptor_that_user_code_put_there_stays(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        theirs = os.open("/dev/null", os.O_WRONLY)
        os.dup2(theirs, 2)
        spool.stop()
        print(os.readlink("/proc/self/fd/2"))
        """,
    )
    assert ran.stdout == "/dev/null\n"


def test_user_code_that_borrows_the_descriptor_gets_its_text_and_we_ours(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"one\\n")
        saved, (reading, writing) = os.dup(2), os.pipe()
        os.dup2(writing, 2)
        os.write(2, b"captured\\n")
        os.dup2(saved, 2); os.close(saved); os.close(writing)
        print(os.read(reading, 100))
        os.write(2, b"two\\n" * 20_000)
        time.sleep(0.2)
        os.write(2, b"three\\n")
        spool.stop()
        """,
    )
    assert ran.stdout == "b'captured\\n'\n"
    assert ran.stderr == "one\n" + "two\n" * 20_000 + "three\n"


def test_a_forked_child_neither_forwards_nor_restores(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        child = os.fork()
        if child == 0:
            os.write(2, b"from the child\\n")
            spool.stop()
            os._exit(0 if os.readlink("/proc/self/fd/2").endswith("stderr.0.txt") else 1)
        assert os.waitpid(child, 0)[1] == 0
        os.write(2, b"from the parent\\n")
        spool.stop()
        """,
    )
    assert (ran.returncode, ran.stderr) == (0, "from the child\nfrom the parent\n")


def test_it_works_without_inotify(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def none_left():
            raise OSError(24, "too many inotify instances")
        spool_module.WriteWatch = none_left
        spool.start()
        for number in range(3000):
            os.write(2, b"line %060d\\n" % number)
            if number % 1000 == 0:
                time.sleep(0.2)
        time.sleep(0.3)
        print(len(list(Path(sys.argv[1]).glob("stderr.*"))))
        spool.stop()
        """,
    )
    assert ran.stderr.splitlines() == [f"line {n:060d}" for n in range(3000)]
    assert int(ran.stdout) == 2


def test_a_quiet_spool_costs_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        time.sleep(0.2)
        before = time.process_time()
        time.sleep(2.0)
        print(time.process_time() - before)
        spool.stop()
        """,
    )
    assert float(ran.stdout) < 0.02


FULL_DISK = """
import errno
spool.start()
filler = os.open(Path(sys.argv[1]) / "filler", os.O_WRONLY | os.O_CREAT)
try:
    while os.write(filler, b"x" * 4096):
        pass
except OSError as full:
    assert full.errno == errno.ENOSPC
os.write(2, b"a" * 50_000 + b"\\n")  # room for these was taken beforehand
time.sleep(0.4)
os.write(2, b"still heard\\n")
time.sleep(0.2)
print(os.readlink("/proc/self/fd/2").split(":")[0], spool.running, len(problems), *problems)
spool.stop()
"""


def test_a_full_disk_gives_the_old_descriptor_back_and_nothing_is_lost(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare(1) to make a small disk of its own")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=200k none {disk} || exit 77; exec "$@"'
    ran = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, "sh", *program(disk, FULL_DISK)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if ran.returncode in (1, 77) and re.search("unshare|mount", ran.stderr):
        pytest.skip(f"this machine lets nobody mount a small disk: {ran.stderr.strip()[:100]}")
    assert ran.stdout.startswith("pipe False 1 Native text is no longer kept: "), ran
    assert ran.stderr == "a" * 50_000 + "\nstill heard\n"


def test_no_room_at_the_start_leaves_the_descriptor_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool_module, "reserve", full)
    before = os.fstat(2).st_ino
    with PrivateFolder(tmp_path / "f") as folder, pytest.raises(OSError, match="No space"):
        StderrSpool(folder, print).start()
    assert os.fstat(2).st_ino == before


def test_windows_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    before = os.fstat(2).st_ino
    with PrivateFolder(tmp_path / "f") as folder:
        spool = StderrSpool(folder, print)
        with pytest.raises(SourceUnavailable):
            spool.start()
        spool.stop()
    assert os.fstat(2).st_ino == before


def test_a_file_stays_shorter_than_what_a_child_may_write(tmp_path: Path) -> None:
    # `ulimit -f` counts KiB; a child that writes beyond it dies of SIGXFSZ.
    ran = run(
        tmp_path,
        """
        spool.start()
        for _ in range(100):
            os.write(2, b"x" * 8000)
            time.sleep(0.012)
        print(subprocess.run("ulimit -f 200; echo child >&2", shell=True).returncode)
        spool.stop()
        """,
    )
    assert ran.stdout == "0\n"
    assert ran.stderr.endswith("child\n")
    assert max(path.stat().st_size for path in tmp_path.glob("stderr.*")) < 3 * FILE_LIMIT_BYTES
