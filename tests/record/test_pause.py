"""The thread of native text keeps still after a write: for how long, and that nothing of ours runs meanwhile."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.record.folders import PrivateFolder
from jupyter_tfguard.record.linux_files import WriteWatch
from jupyter_tfguard.record.native_text import FILE_BYTES, KEPT_BYTES
from jupyter_tfguard.record.outlet import Outlet
from jupyter_tfguard.record.pause import STEP_SECONDS, Pause
from jupyter_tfguard.record.stderr_descriptor import StderrDescriptor
from jupyter_tfguard.record.textfile_pair import TextFilePair
from tests.record.spool_rig import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="writes are told on Linux only")

NEVER = float("-inf")


class Files:
    """Files of native text, and the watch on them; fd 2 is not touched."""

    def __init__(self, folder: Path) -> None:
        self._nowhere = os.open(os.devnull, os.O_WRONLY)
        self._outlet = Outlet(self._nowhere)
        self._stderr = StderrDescriptor(os.dup(self._nowhere), threading.Event())
        self.watch = WriteWatch()
        self.pair = TextFilePair(PrivateFolder(folder), self._outlet, self.watch, self._stderr)
        self.watch.written_since()

    def write(self, count: int = 5) -> None:
        os.write(self.pair.current.descriptor, b"x" * count)

    def steps(self, writes: int, *, nudged: float = NEVER, patient: bool = True) -> int:
        """Steps of a pause with a write before each of the first ones."""
        pause = Pause(self.pair, self.watch, patient=patient)
        for step in range(1, 100):
            if step <= writes:
                self.write()
            if pause.is_over(nudged):
                return step
        raise AssertionError("it never ends")

    def close(self) -> None:
        for closed in (self.pair, self.watch, self._outlet, self._stderr):
            closed.close()
        os.close(self._nowhere)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    made.close()


def test_it_is_over_when_nobody_has_written_for_six_steps(files: Files) -> None:
    assert files.steps(writes=1) == 7
    assert files.steps(writes=5) == 11


def test_it_is_over_after_twenty_steps_though_somebody_writes_on(files: Files) -> None:
    assert files.steps(writes=100) == 20


def test_it_is_one_step_where_text_is_waited_for(files: Files) -> None:
    assert files.steps(writes=100, patient=False) == 1


def test_it_is_one_step_where_nothing_tells_of_writes(files: Files) -> None:
    assert Pause(files.pair, None).is_over(NEVER)


def test_a_nudge_ends_it_and_one_long_ago_does_not(files: Files) -> None:
    assert files.steps(writes=100, nudged=time.monotonic()) == 1
    assert files.steps(writes=100, nudged=time.monotonic() - 10 * STEP_SECONDS) == 20


def test_a_file_that_is_nearly_full_ends_it_while_somebody_writes(files: Files) -> None:
    files.write(KEPT_BYTES)
    assert files.steps(writes=100) == 2
    assert files.steps(writes=1) == 7  # nobody writes: there is time
    files.write(FILE_BYTES - KEPT_BYTES)
    assert files.steps(writes=1) == 1


def test_nothing_of_ours_runs_between_a_write_and_the_end_of_the_pause(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        seen = []
        def trace(frame, event, called):
            where = frame.f_code.co_name
            if event == "c_call" and called is time.sleep:
                seen.append(f"sleep in {where}")
            elif event in ("call", "return"):
                seen.append(f"{event} {where}")
        threading.setprofile(trace)
        spool.start()
        threading.setprofile(None)
        for number in range(20):
            os.write(2, b"word %d\\n" % number)
            time.sleep(0.05)
        spool.stop()
        from collections import Counter
        after = lambda name: Counter(then for now, then in zip(seen, seen[1:]) if now == name)
        print(dict(after("return _wait")), sum(after("call _look").values()) > 5)
        print(dict(after("return _look")))
        print({name for name in seen if name.startswith("sleep")})
        """,
    )
    waited, looked, slept = ran.stdout.splitlines()
    assert waited.startswith("{'sleep in run': ")
    assert waited.endswith("} True")
    assert "," not in waited + looked
    assert looked.startswith("{'sleep in run': ")
    assert (
        slept == "{'sleep in run'}"
    )  # whoever else sleeps has a frame that the next one overwrites
    assert ran.stderr == "".join(f"word {number}\n" for number in range(20))


def test_a_descriptor_that_the_user_closed_meanwhile_is_not_read(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        from jupyter_tfguard.record.linux_files import WriteWatch
        watch = WriteWatch()
        theirs, ours = os.pipe()
        os.write(ours, b"the user's")
        os.dup2(theirs, watch._descriptor)
        try:
            print(watch.written_since())
        except OSError as bad:
            print(bad.strerror)
        print(os.read(theirs, 100).decode())
        """,
    )
    assert ran.stdout == "Bad file descriptor\nthe user's\n"
