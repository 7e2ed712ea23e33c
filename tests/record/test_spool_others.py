"""Native text of a kernel that is not alone with its fd 2: limits on files, and user code that moves fd 2."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.record.native_text import KEPT_BYTES
from tests.record.spool_rig import kept, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")


# --- limits on the length of files (`ulimit -f` counts KiB; who writes beyond it dies of SIGXFSZ)

LIMITED = "ulimit -f {}; i=0; while [ $i -lt {} ]; do printf '%0999d\\\\n' $i >&2; sleep 0.01; i=$((i+1)); done"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("limit", [128, 200, 1024])
def test_a_child_under_a_limit_for_files_lives_while_much_is_written(
    tmp_path: Path, limit: int
) -> None:
    ran = run(
        tmp_path,
        f"""
        spool.start()
        script = "{LIMITED.format(limit, 200)}"
        child = subprocess.Popen(["bash", "-c", script])
        while child.poll() is None:
            before = spool._pair.current.taken, spool._pair.current.number
            os.write(2, b"." * 7999 + b"\\n")
            settled(lambda: (spool._pair.current.taken, spool._pair.current.number) != before)
        print(child.returncode)
        spool.stop()
        """,
    )
    assert ran.stdout == "0\n"
    lines = ran.stderr.splitlines()
    assert [x for x in lines if not x.startswith(".")] == [f"{n:0999d}" for n in range(200)]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_limit_is_a_real_one(tmp_path: Path) -> None:
    # What the tests above survive would kill them if the file grew.
    ran = run(
        tmp_path,
        """
        fd = os.open(folder / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, b"x" * 200_000)
        print(subprocess.run(["bash", "-c", "ulimit -f 128; /bin/echo x >&2"], stderr=fd).returncode)
        """,
    )
    assert int(ran.stdout) in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ)


# --- user code that moves fd 2


def test_a_descriptor_that_user_code_put_there_stays(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        theirs = os.open("/dev/null", os.O_WRONLY)
        os.dup2(theirs, 2)
        os.write(2, b"not for us")
        time.sleep(0.1)
        spool.stop()
        print(os.readlink("/proc/self/fd/2"))
        """,
    )
    assert (ran.stdout, ran.stderr) == ("/dev/null\n", "")


def test_user_code_that_closes_the_descriptor_gets_it_for_its_next_file(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        child = subprocess.Popen("sleep 0.3; head -c 300000 /dev/zero | tr '\\\\0' x >&2", shell=True)
        os.write(2, b"before\\n")
        heard(b"before\\n")
        os.close(2)
        theirs = os.open(folder / "theirs", os.O_WRONLY | os.O_CREAT)
        assert theirs == 2
        os.write(2, b"theirs alone")
        child.wait()
        settled(lambda: sizes()[0] <= 98304)
        spool.stop()
        os.write(2, b", to the end")
        print((folder / "theirs").read_text(), len(problems))
        """,
    )
    assert ran.stdout == "theirs alone, to the end 0\n"
    assert ran.stderr == "before\n" + "x" * 300_000


@pytest.mark.parametrize("turns", [0, 1, 2], ids="{} turns meanwhile".format)
def test_user_code_that_borrows_the_descriptor_gets_its_text_and_we_ours(
    tmp_path: Path, turns: int
) -> None:
    # As pytest's capfd and wurlitzer do. The copy they keep may be of the file that is not the newest any more.
    ran = run(
        tmp_path,
        f"""
        spool.start()
        os.write(2, b"one\\n")
        saved, (reading, writing) = os.dup(2), os.pipe()
        for turn in range({turns}):
            os.write(2, b"turn\\n" * 15_000)
            settled(lambda: spool._pair.current.number == 2 * turn + 6 and spool._stderr.stands_for(spool._pair.current))
        os.dup2(writing, 2)
        os.write(2, b"captured\\n")
        time.sleep(0.05)
        os.dup2(saved, 2); os.close(saved); os.close(writing)
        print(os.read(reading, 100))
        os.write(2, b"two\\n" * 20_000)
        heard(b"two\\n")
        os.write(2, b"three\\n")
        heard(b"three\\n")
        print(native_text.last_words(spool._folder)[-10:].split())
        spool.stop()
        """,
    )
    assert ran.stdout == "b'captured\\n'\n['two', 'three']\n"
    assert ran.stderr == "one\n" + "turn\n" * 15_000 * turns + "two\n" * 20_000 + "three\n"
    assert len(kept(tmp_path)) >= KEPT_BYTES


def test_user_code_that_closes_everything_keeps_its_own_files_whole(tmp_path: Path) -> None:
    # As a program does that makes itself a daemon. Our numbers then stand for files of its own.
    (tmp_path / "own").mkdir()
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"before\\n")
        heard(b"before\\n")
        settled(lambda: not spool._outlet.waiting)
        time.sleep(0.2)
        highest = max(map(int, os.listdir("/proc/self/fd")))
        os.closerange(3, highest + 1)
        for number in range(3, highest + 1):
            descriptor = os.open(folder / "own" / str(number), os.O_RDWR | os.O_CREAT)
            os.write(descriptor, b"mine\\n" * 20_000)
        for number in range(300):
            os.write(2, b"%05d" % number + b"." * 994 + b"\\n")
            time.sleep(0.002)
        spool.stop()
        found = {p.read_bytes() for p in (folder / "own").iterdir()}
        print(found == {b"mine\\n" * 20_000}, len(problems))
        """,
    )
    assert (ran.returncode, ran.stdout) == (0, "True 1\n"), ran
    assert ran.stderr == "before\n"


def test_without_memory_the_old_descriptor_comes_back(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"before\\n")
        settled(lambda: spool._pair.current.taken > 8192)
        def none_left(*_):
            raise MemoryError
        spool._pair.take_turns = none_left
        os.write(2, b"seen\\n")
        settled(lambda: problems)
        os.write(2, b"direct\\n")
        print(*problems)
        spool.stop()
        """,
    )
    assert ran.stdout == "Native text is no longer kept: MemoryError\n"
    assert ran.stderr == "before\nseen\ndirect\n"
