"""More native text than anybody reads: nobody waits, what is left out is counted, and the files stay short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.native_text import FILE_BYTES, KEPT_BYTES, give_space_back, last_words
from jupyter_tfguard.record.outlet import TAIL_BYTES, WAITING_BYTES
from jupyter_tfguard.units import human_bytes
from tests.conftest import without_pytest
from tests.record.spool_rig import GAP, kept, lines_library, program, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fd 2 is left alone on Windows")


def c_lines(count: int, length: int) -> list[str]:
    return [f"line {n:09d}".ljust(length - 1, ".") for n in range(count)]


# --- native code that holds the GIL


def test_one_write_of_a_mebibyte_with_the_gil_held_returns_and_arrives(tmp_path: Path) -> None:
    # Through a pipe to a thread of the same process this never returns.
    ran = run(
        tmp_path,
        """
        spool.start()
        text = b"".join(b"%06d\\n" % n for n in range(150_000))[:1 << 20]
        print(ctypes.PyDLL(None).write(2, text, len(text)))
        settled(lambda: sizes() == (98304, 98304))
        spool.stop()
        print(dropped)
        """,
    )
    assert ran.stdout == f"{1 << 20}\n[]\n"
    assert ran.stderr == "".join(f"{n:06d}\n" for n in range(150_000))[: 1 << 20]


def test_a_native_loop_that_holds_the_gil_is_passed_on_whole_afterwards(tmp_path: Path) -> None:
    library = lines_library(tmp_path)
    ran = run(
        tmp_path / "f",
        f"""
        native = ctypes.PyDLL("{library}")
        native.write_lines.restype = ctypes.c_long
        spool.start()
        print(native.write_lines(ctypes.c_long(70_000), 100, 2))
        settled(lambda: sizes() == (98304, 98304))
        spool.stop()
        print(dropped)
        """,
    )
    assert ran.stdout == "7000000\n[]\n"
    assert ran.stderr.splitlines() == c_lines(70_000, 100)


def test_the_last_words_survive_while_native_code_holds_the_gil(tmp_path: Path) -> None:
    library = lines_library(tmp_path)
    ran = run(
        tmp_path / "f",
        f"""
        native = ctypes.PyDLL("{library}")
        spool.start()
        native.write_lines(ctypes.c_long(200_000), 100, 2)
        os.abort()
        """,
    )
    assert ran.returncode == -signal.SIGABRT
    with PrivateFolder(tmp_path / "f") as folder:
        wanted = "".join(line + "\n" for line in c_lines(200_000, 100)[-1000:])
        assert last_words(folder) == wanted[-KEPT_BYTES:]


def test_beyond_what_may_wait_the_middle_is_left_out_and_counted_to_the_byte(
    tmp_path: Path,
) -> None:
    library = lines_library(tmp_path)
    ran = run(
        tmp_path / "f",
        f"""
        native = ctypes.PyDLL("{library}")
        spool.start()
        native.write_lines(ctypes.c_long(400_000), 100, 2)
        settled(lambda: sizes() == (98304, 98304) and not spool._outlet.waiting)
        os.write(2, b"and on it goes\\n")
        spool.stop()
        print(dropped[-1])
        """,
    )
    wanted = "".join(line + "\n" for line in c_lines(400_000, 100))
    before, said, after = GAP.split(ran.stderr)
    count = int(ran.stdout)
    assert said == human_bytes(count)
    assert len(before) == WAITING_BYTES
    assert wanted.startswith(before)
    assert after == wanted[-TAIL_BYTES:] + "and on it goes\n"
    assert count == len(wanted) - WAITING_BYTES - TAIL_BYTES


def test_a_watcher_outside_bounds_the_disk_space_meanwhile(tmp_path: Path) -> None:
    library = lines_library(tmp_path)
    folder = tmp_path / "f"
    body = f"""
        native = ctypes.PyDLL("{library}")
        spool.start()
        print("ready", flush=True)
        native.write_lines(ctypes.c_long(10 ** 9), 100, 2)
        """
    running = subprocess.Popen(
        program(folder, body),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=without_pytest(os.environ),
    )
    try:
        assert running.stdout is not None
        running.stdout.readline()
        file = folder / "stderr.4.txt"
        after = []
        with PrivateFolder(folder) as opened:
            while file.stat().st_size < 200_000_000:
                give_space_back(opened)
                after.append(file.stat().st_blocks * 512)
                time.sleep(0.002)
            os.kill(running.pid, signal.SIGSTOP)  # so that it can be looked at
            os.waitid(os.P_PID, running.pid, os.WSTOPPED)
            give_space_back(opened)
            assert file.stat().st_blocks * 512 < 2 * WAITING_BYTES
            assert len(last_words(opened)) == KEPT_BYTES
            lines = last_words(opened).splitlines()[1:-1]
            numbers = [int(line[5:14]) for line in lines]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert max(after) < 150_000_000
    finally:
        running.kill()
        running.communicate()


# --- native code that leaves the GIL alone, and readers that are slow


@pytest.mark.parametrize("beside", ["nothing", "a Python loop"])
def test_a_writer_faster_than_any_reader_is_not_held_up_and_every_byte_is_accounted_for(
    tmp_path: Path, beside: str
) -> None:
    library = lines_library(tmp_path)
    ran = run(
        tmp_path / "f",
        f"""
        native = ctypes.CDLL("{library}")
        native.write_lines.restype = ctypes.c_long
        spool.start()
        written = []
        thread = threading.Thread(target=lambda: written.append(native.write_lines(ctypes.c_long(1_000_000), 100, 2)))
        thread.start()
        longest = 0
        while thread.is_alive():
            longest = max(longest, sizes()[1])
            if {beside == "nothing"}:
                thread.join(0.01)
        os.write(2, b"the end\\n")
        settled(lambda: sizes() == (98304, 98304))
        spool.stop()
        print(written[0], dropped[-1] if dropped else 0, longest)
        """,
        timeout=120,
    )
    written, left_out, _ = map(int, ran.stdout.split())
    assert written == 100_000_000
    notes = GAP.findall(ran.stderr)
    text = GAP.sub("", ran.stderr)
    assert len(text) == written + len("the end\n") - left_out
    assert text.endswith("\nthe end\n")
    assert bool(notes) == bool(left_out)
    whole = "".join(kept(tmp_path / "f"))
    assert whole.endswith(f"{c_lines(1_000_000, 100)[-1]}\nthe end\n")


def test_a_reader_that_stops_reading_holds_nobody_up(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        spool.start()
        for number in range(40_000):
            os.write(2, b"%06d" % number + b"." * 493 + b"\\n")
        settled(lambda: spool._outlet.dropped_bytes)
        settled(lambda: "039999" in native_text.last_words(spool._folder))
        settled(lambda: sizes()[0] <= 98304)
        print(sizes()[0], len(problems))
        found = b""
        while not found.endswith(b"last\\n"):
            found += os.read(reading, 1 << 16)
            if b"039999" in found[-500:]:
                os.write(2, b"last\\n")
        spool.stop()
        count = dropped[-1]
        head, _, tail = found.partition(b"\\n[tfguard: ")
        note, _, tail = tail.partition(b"]\\n")
        print(note.decode(), len(head) + len(tail) - 5 + count)
        """,
    )
    first, second = ran.stdout.splitlines()
    size, problems = map(int, first.split())
    assert size <= FILE_BYTES
    assert problems == 0
    assert "of native text were not passed on" in second
    assert int(second.split()[-1]) == 40_000 * 500


def test_a_stop_does_not_wait_long_for_a_reader_that_stopped(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        spool.start()
        os.write(2, b"x" * 1_000_000)
        began = time.monotonic()
        spool.stop()
        print(time.monotonic() - began < 6, dropped[-1] + len(os.read(reading, 1 << 20)))
        """,
    )
    assert ran.stdout == "True 1000000\n"


def test_the_stated_rate_is_passed_on_completely(tmp_path: Path) -> None:
    # 4 MiB/s for 4 seconds, in lines, natively, while Python code runs beside it.
    library = lines_library(tmp_path)
    ran = run(
        tmp_path,
        f"""
        write_lines = ctypes.CDLL({str(library)!r}).write_lines
        spool.start()
        def write():
            began = time.monotonic()
            for number in range(256):
                write_lines(512, 128, 2)
                time.sleep(max(0, began + (number + 1) / 64 - time.monotonic()))
        thread = threading.Thread(target=write)
        thread.start()
        while thread.is_alive():
            sum(range(1000))
        spool.stop()
        print(dropped)
        """,
    )
    assert ran.stdout == "[]\n"
    batch = "".join(f"line {n:09d}".ljust(127, ".") + "\n" for n in range(512))
    assert ran.stderr == 256 * batch
