"""Native text of a kernel whose children write with it, by the descriptor they were given or by its name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.record.spool_rig import GAP, kept, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")


# --- by the descriptor that it was given


def test_a_child_started_long_ago_is_heard_to_its_end(tmp_path: Path) -> None:
    # One megabyte of other text later: its file was used again and again meanwhile.
    ran = run(
        tmp_path,
        """
        spool.start()
        child = subprocess.Popen(["sh", "-c", "echo early >&2; read x; echo late >&2"], stdin=subprocess.PIPE)
        heard(b"early\\n")
        for number in range(25_000):
            os.write(2, b"%040d\\n" % number)
        heard(b"%040d\\n" % number)
        child.communicate(b"\\n")
        spool.stop()
        """,
    )
    lines = ran.stderr.splitlines()
    assert lines[0] == "early"
    assert lines[-1] == "late"
    assert lines[1:-1] == [f"{n:040d}" for n in range(25_000)]


@pytest.mark.parametrize("how", ["forked", "spawned"])
def test_a_child_and_its_parent_write_together_and_nothing_is_lost(
    tmp_path: Path, how: str
) -> None:
    # About 1.4 MB/s each: the child's file is cleared several times while it writes to it.
    ran = run(
        tmp_path,
        f"""
        text = (
            "import os, time\\n"
            "def loop(name, count):\\n"
            "    for n in range(count):\\n"
            "        os.write(2, b'%s %06d of native text\\\\n' % (name, n))\\n"
            "        if n % 50 == 0: time.sleep(0.001)\\n"
        )
        exec(text)
        spool.start()
        if {how == "forked"}:
            child = os.fork()
            if child == 0:
                loop(b"child", 12_000)
                os._exit(0)
            wait = lambda: os.waitpid(child, 0)
        else:
            wait = subprocess.Popen([sys.executable, "-c", text + "loop(b'child', 12_000)"]).wait
        loop(b"parent", 12_000)
        wait()
        loop(b"later", 12_000)
        spool.stop()
        print(len(dropped))
        """,
    )
    lines = ran.stderr.splitlines()
    assert ran.stdout == "0\n"
    for name in ("child", "parent", "later"):
        found = [line for line in lines if line.startswith(name)]
        assert found == [f"{name} {n:06d} of native text" for n in range(12_000)]
    assert len(lines) == 36_000


def test_a_forked_child_neither_forwards_nor_restores(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        child = os.fork()
        if child == 0:
            os.write(2, b"from the child\\n")
            spool.stop()
            os._exit(0 if "stderr." in os.readlink("/proc/self/fd/2") else 1)
        assert os.waitpid(child, 0)[1] == 0
        os.write(2, b"from the parent\\n")
        spool.stop()
        """,
    )
    assert (ran.returncode, ran.stderr) == (0, "from the child\nfrom the parent\n")


def test_a_child_that_goes_on_for_long_keeps_the_file_short(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        child = subprocess.Popen("sleep 0.3; i=0; while [ $i -lt 300 ]; do head -c 10000 /dev/zero | tr '\\\\0' x >&2; "
                                 "sleep 0.004; i=$((i+1)); done; echo end >&2", shell=True)
        for number in range(3000):  # the child's file is the older one from here on
            os.write(2, b"%049d\\n" % number)
        largest = (0, 0)
        while child.poll() is None:
            largest = max(largest, sizes())
            time.sleep(0.001)
        settled(lambda: sizes() == (98304, 98304))
        print(*largest)
        spool.stop()
        """,
    )
    longest, on_disk = map(int, ran.stdout.split())
    assert longest < 1_000_000  # of 3 MB; otherwise a matter of speed
    assert on_disk < 1_000_000
    assert len(ran.stderr) == 3000 * 50 + 300 * 10_000 + 4
    assert ran.stderr.endswith("xend\n")


# --- opened by its name


def test_a_child_that_empties_the_file_loses_nobody_elses_text(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"before, a line that is longer than the child's\\n")
        heard(b"child's\\n")
        subprocess.run("echo child > /dev/stderr", shell=True)
        heard(b"child\\n")
        os.write(2, b"after\\n")
        spool.stop()
        """,
    )
    before = "before, a line that is longer than the child's\n"
    assert ran.stderr == before + "child\nafter\n"
    assert kept(tmp_path) == before + "child\nafter\n"  # and is kept, too


@pytest.mark.parametrize("opened", [">", ">>"])
def test_a_script_that_writes_both_ways_is_heard_completely(tmp_path: Path, opened: str) -> None:
    ran = run(
        tmp_path,
        f"""
        spool.start()
        for n in range(40):
            script = f"echo one >&2; echo two {{n}} {opened} /dev/stderr; echo three {{n}} >&2"
            subprocess.run(script, shell=True)
            heard(b"two %d\\n" % n)
            heard(b"three %d\\n" % n)
        os.write(2, b"after\\n")
        spool.stop()
        print(len(problems), len(os.listdir("/proc/self/fd")) < 20)
        """,
    )
    lines = ran.stderr.splitlines()
    assert lines[-1] == "after"
    for word in ("two", "three"):
        found = [line for line in lines if line.startswith(word)]
        assert found == [f"{word} {n}" for n in range(40)]
    # What was written just before the file is emptied is not always read in time; then it is counted.
    counted = sum(int(said.removesuffix(" B")) for said in GAP.findall(ran.stderr))
    assert 4 * lines.count("one") + counted == 4 * 40
    assert opened == ">" or lines.count("one") == 40
    assert ran.stdout == "0 True\n"


def test_a_child_that_empties_the_file_and_writes_more_is_noticed(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"short\\n")
        heard(b"short\\n")
        subprocess.run("seq -w 1 20000 > /dev/stderr", shell=True)
        spool.stop()
        """,
    )
    assert ran.stderr == "short\n" + "".join(f"{n:05d}\n" for n in range(1, 20_001))


def test_a_script_that_empties_it_again_and_again_with_the_same_words_is_heard(
    tmp_path: Path,
) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        loop = "while read x; do echo same > /dev/stderr; echo $x; done"
        child = subprocess.Popen(loop, shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in range(30):
            child.stdin.write(b"%d\\n" % number); child.stdin.flush()
            child.stdout.readline()
            settled(lambda: passed.count(b"same") == number + 1)
        child.communicate()
        os.write(2, b"after\\n")
        spool.stop()
        """,
    )
    assert ran.stderr == "same\n" * 30 + "after\n"


def test_what_comes_through_tee_arrives(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"before\\n")
        heard(b"before\\n")
        slow = "i=0; while [ $i -lt 50 ]; do echo line $i; sleep 0.005; i=$((i+1)); done"
        subprocess.run(f"({slow}) | tee /dev/stderr | wc -l", shell=True)
        os.write(2, b"after\\n")
        spool.stop()
        """,
    )
    assert ran.stdout.strip() == "50"
    assert ran.stderr == "before\n" + "".join(f"line {n}\n" for n in range(50)) + "after\n"


def test_text_that_was_cut_off_unread_is_counted(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        spool.start()
        os.write(2, b"first\\n")
        settled(lambda: spool._pair.current.taken > 8192)
        with spool._stderr._lock:  # as if the thread came late
            pass
        spool._forwarder.take = lambda take=spool._forwarder.take: None
        os.write(2, b"x" * 1000)
        subprocess.run("echo child > /dev/stderr", shell=True)
        os.write(2, b"after\\n")
        del spool._forwarder.take
        os.write(2, b"more\\n")
        settled(lambda: dropped)
        spool.stop()
        print(dropped[-1])
        """,
    )
    assert ran.stdout == "1000\n"
    assert ran.stderr == (
        "first\n\n[tfguard: 1000 B of native text were not passed on]\nchild\nafter\nmore\n"
    )
