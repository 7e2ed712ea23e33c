"""The last native words: complete on the way to the old fd 2, whole in the file, and gone without a trace."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from jupyter_tfguard.errors import SourceUnavailable
from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.native_text import FILE_BYTES, KEPT_BYTES, last_words
from jupyter_tfguard.record.spool import StderrSpool
from tests.record.spool_rig import kept, run, run_on_a_small_disk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")


def test_everything_arrives_in_order_while_the_files_take_turns(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        for number in range(30_000):
            os.write(2, b"line %06d of native text\\n" % number)
        spool.stop()
        print(len(problems), len(dropped))
        """,
    )
    assert ran.stderr == "".join(f"line {n:06d} of native text\n" for n in range(30_000))
    assert ran.stdout == "0 0\n"
    assert len(list(tmp_path.glob("stderr.*"))) in (2, 3)  # 780 KB went through them
    whole = kept(tmp_path)
    assert whole.endswith("line 029999 of native text\n")
    assert len(whole) >= KEPT_BYTES
    with PrivateFolder(tmp_path) as folder:
        assert last_words(folder) == ran.stderr[-KEPT_BYTES:]


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


def test_a_write_that_was_under_way_while_the_files_took_turns_comes_in_order(
    tmp_path: Path,
) -> None:
    ran = run(
        tmp_path,
        """
        from jupyter_tfguard.record.textfile_pair import TextFilePair
        from jupyter_tfguard.record.stderr_descriptor import StderrDescriptor
        outlet = Outlet(2)
        stderr = StderrDescriptor(os.dup(2), threading.Event())
        pair = TextFilePair(PrivateFolder(folder), outlet, None, stderr)
        take = pair.other.take
        def take_just_before_they_write(*given):
            taken = take(*given)
            os.write(pair.other.descriptor, b"first\\n")  # had begun before fd 2 became the current file
            os.write(pair.current.descriptor, b"then\\n")
            pair.other.take = take
            return taken
        pair.other.take = take_just_before_they_write
        pair.take()
        pair.take()
        outlet.send()
        """,
    )
    assert ran.stderr == "first\nthen\n"


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


def test_at_least_64_kib_are_kept_at_every_moment(tmp_path: Path) -> None:
    for attempt, lines in enumerate((2700, 3100, 5000, 5200, 9999)):
        folder = tmp_path / str(attempt)
        ran = run(
            folder,
            f"""
            spool.start()
            for number in range({lines}):
                os.write(2, b"line %06d of native text\\n" % number)
            os.kill(os.getpid(), signal.SIGKILL)
            """,
        )
        assert ran.returncode == -signal.SIGKILL
        wanted = "".join(f"line {n:06d} of native text\n" for n in range(lines))[-KEPT_BYTES:]
        with PrivateFolder(folder) as opened:
            assert last_words(opened) == wanted


def test_stopping_puts_the_old_descriptor_back(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        before = os.readlink("/proc/self/fd/2"), sorted(os.listdir("/proc/self/fd"))
        spool.start()
        assert re.search(r"stderr\\.[0-9]+\\.txt$", os.readlink("/proc/self/fd/2"))
        spool.stop()
        assert (os.readlink("/proc/self/fd/2"), sorted(os.listdir("/proc/self/fd"))) == before
        os.write(2, b"direct\\n")
        assert not [t for t in threading.enumerate() if "tfguard" in t.name]
        """,
    )
    assert (ran.returncode, ran.stderr) == (0, "direct\n")


def test_the_flags_of_the_old_descriptor_are_not_touched(tmp_path: Path) -> None:
    # They are shared with every process that has it, the Jupyter server for one.
    ran = run(
        tmp_path,
        """
        import fcntl
        kept_for_us = os.dup(2)
        before = fcntl.fcntl(kept_for_us, fcntl.F_GETFL)
        spool.start()
        os.write(2, b"text\\n" * 10_000)
        settled(lambda: spool._pair.current.taken > 20_000)
        print(fcntl.fcntl(kept_for_us, fcntl.F_GETFL) == before)
        spool.stop()
        """,
    )
    assert (ran.stdout, ran.stderr) == ("True\n", "text\n" * 10_000)


def test_it_works_without_inotify(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def none_left():
            raise OSError(24, "too many inotify instances")
        spool_module.WriteWatch = none_left
        spool.start()
        for number in range(6000):
            os.write(2, b"line %060d\\n" % number)
            if number % 1000 == 0:
                time.sleep(0.2)
        time.sleep(0.3)
        print(len(list(folder.glob("stderr.*"))))
        spool.stop()
        """,
    )
    assert ran.stderr.splitlines() == [f"line {n:060d}" for n in range(6000)]
    assert int(ran.stdout) in (2, 3)


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


def test_nobody_reads_any_more_and_the_words_are_kept_all_the_same(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        spool.start()
        os.close(reading)
        for number in range(5000):
            os.write(2, b"line %04d, read by nobody\\n" % number)
        time.sleep(0.2)
        os.write(2, b"the end\\n")
        time.sleep(0.1)
        print(spool.running, len(problems), len(dropped))
        """,
    )
    assert (ran.returncode, ran.stdout) == (0, "True 0 0\n")
    assert kept(tmp_path).endswith("line 4999, read by nobody\nthe end\n")


# --- disks


def test_a_disk_that_fills_up_later_takes_nothing_away(tmp_path: Path) -> None:
    ran = run_on_a_small_disk(
        tmp_path / "disk",
        "1m",
        """
        import errno
        spool.start()
        filler = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(filler, b"x" * 4096):
                pass
        except OSError as full:
            assert full.errno == errno.ENOSPC
        for number in range(200):  # two hundred turns of the files
            os.write(2, b"%05d" % number + b"a" * 65_530 + b"\\n")
            settled(lambda: spool._pair.current.number == 2 * number + 6 and spool._stderr.stands_for(spool._pair.current))
        os.write(2, b"still heard\\n")
        settled(lambda: spool._pair.current.last.endswith(b"heard\\n"))
        print(spool.running, len(problems), *sizes(), native_text.last_words(spool._folder)[-12:])
        spool.stop()
        """,
    )
    assert ran.stdout == f"True 0 {FILE_BYTES} {FILE_BYTES} still heard\n\n", ran
    expected = "".join(f"{n:05d}{'a' * 65_530}\n" for n in range(200))
    assert ran.stderr == expected + "still heard\n"


def test_where_no_thread_can_start_the_old_descriptor_comes_back(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        before = os.fstat(2).st_ino, sorted(os.listdir("/proc/self/fd"))
        threading.stack_size(1 << 47)  # more than there are addresses
        try:
            spool.start()
        except OSError as bad:
            print(bad.strerror)
        os.write(2, b"direct\\n")
        assert (os.fstat(2).st_ino, sorted(os.listdir("/proc/self/fd"))) == before
        print(spool.running, spool.place(), sorted(folder.glob("*stderr*")))
        spool.stop()
        """,
    )
    assert ran.stdout == "can't start new thread\nFalse None []\n", ran
    assert ran.stderr == "direct\n"


def test_no_room_at_the_start_leaves_the_descriptor_alone(tmp_path: Path) -> None:
    ran = run_on_a_small_disk(
        tmp_path / "disk",
        "100k",
        """
        before = os.fstat(2).st_ino, sorted(os.listdir("/proc/self/fd"))
        try:
            spool.start()
        except OSError as bad:
            print(bad.strerror)
        assert (os.fstat(2).st_ino, sorted(os.listdir("/proc/self/fd"))) == before
        print(sorted(folder.glob("*stderr*")))
        """,
    )
    assert ran.stdout == "No space left on device\n[]\n", ran


def test_a_disk_that_refuses_later_gives_the_old_descriptor_back(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"before\\n")
        settled(lambda: spool._pair.current.taken > 8192)
        def refuse(*_):
            raise OSError(5, "Input/output error")
        textfile_module._write_at = refuse
        while not problems:  # until a file is to be used again
            os.write(2, b"a" * 6999 + b"\\n")
            time.sleep(0.01)
        os.write(2, b"direct\\n")
        print(spool.running, *problems)
        spool.stop()
        """,
    )
    assert ran.stdout == "False Native text is no longer kept: [Errno 5] Input/output error\n"
    lines = ran.stderr.splitlines()
    assert (lines[0], lines[-1]) == ("before", "direct")
    assert set(lines[1:-1]) == {"a" * 6999}
    assert len(lines) >= 12


def test_under_a_small_limit_for_files_the_descriptor_is_left_alone(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        before = os.fstat(2).st_ino
        try:
            spool.start()
        except Exception as bad:
            print(type(bad).__name__, bad)
        assert os.fstat(2).st_ino == before
        os.write(2, b"direct\\n")
        """,
        before="ulimit -f 127",
    )
    assert ran.stdout.startswith(
        "SourceUnavailable Native text is not kept: files may have 127 KiB here"
    )
    assert ran.stderr == "direct\n"
    assert not list(tmp_path.glob("stderr*"))


def test_windows_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    before = os.fstat(2).st_ino
    with PrivateFolder(tmp_path / "f") as folder:
        spool = StderrSpool(folder, print)
        with pytest.raises(SourceUnavailable):
            spool.start()
        spool.stop()
    assert os.fstat(2).st_ino == before


# --- reading what a death left


@pytest.mark.parametrize("cleared", [0, 4096, 8192, 20_000, 98_304, 120_000], ids=str)
def test_a_death_while_an_overgrown_file_is_cleared_leaves_the_words_in_order(
    tmp_path: Path, cleared: int
) -> None:
    text = b"".join(b"%07d\n" % n for n in range(15_000))
    old = bytearray(bytes(8192) + text)
    old[:cleared] = bytes(cleared)
    with PrivateFolder(tmp_path / "f") as folder:
        folder.write_whole("stderr.3.txt", text[-KEPT_BYTES:])
        folder.write_whole("stderr.4.txt", bytes(old))
        folder.write_whole("stderr.6.txt", bytes(8192) + b"newest\n" + bytes(90_105))
        assert last_words(folder) == (text + b"newest\n")[-KEPT_BYTES:].decode()


def test_a_child_that_wrote_to_a_cleared_file_comes_after_what_was_cleared(tmp_path: Path) -> None:
    with PrivateFolder(tmp_path / "f") as folder:
        folder.write_whole("stderr.3.txt", b"cleared\n")
        folder.write_whole("stderr.4.txt", bytes(8192) + b"child\n" + bytes(90_106))
        folder.write_whole("stderr.6.txt", bytes(8192) + b"newest\n" + bytes(90_105))
        assert last_words(folder) == "cleared\nchild\nnewest\n"
