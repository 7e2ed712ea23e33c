"""Stacks of all threads, read back from what faulthandler writes."""

from __future__ import annotations

import faulthandler
import tempfile
import threading

import pytest

from jupyter_tfguard.record.stacks import stacks_of, thread_name, user_first

pytestmark = pytest.mark.quick

SERVICE = 'Thread 0x0000000000000001 (most recent call first):\n  File "/env/ipykernel/heartbeat.py", line 9 in run'
MAIN = 'Thread 0x0000000000000002 (most recent call first):\n  File "/tmp/cell.py", line 3 in wait'
WORKER = 'Current thread 0x0000000000000003 [loader] (most recent call first):\n  File "/home/u/load.py", line 1 in load'


def written() -> list[str]:
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode().splitlines()


def test_every_thread_is_found_by_the_name_that_faulthandler_gives_it() -> None:
    held, begun = threading.Event(), threading.Event()

    def waiting() -> None:
        begun.set()
        held.wait()

    thread = threading.Thread(target=waiting)
    thread.start()
    begun.wait()
    found = stacks_of(written())
    held.set()
    thread.join()
    assert "waiting" in [frame.name for frame in found[thread_name(thread.ident or 0)]]
    own = found[thread_name(threading.get_ident())]
    assert own[0].name == "written"
    assert own[0].file == __file__


def test_the_main_thread_comes_first_and_the_kernels_machinery_last() -> None:
    lines = "\n\n".join([SERVICE, WORKER, MAIN]).splitlines()
    found = user_first(lines, "0x0000000000000002")
    assert [line for line in found if "thread" in line.lower() and "0x" in line] == [
        "Main thread 0x0000000000000002 (most recent call first):",
        "Current thread 0x0000000000000003 [loader] (most recent call first):",
        "Thread 0x0000000000000001 (most recent call first):",
    ]
    assert set(stacks_of(found)) == {f"0x000000000000000{n}" for n in (1, 2, 3)}
    assert stacks_of(found) == stacks_of(lines)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Thread 0x", "no stack at all", '  File "a", line 1 in b']
)
def test_text_without_a_thread_has_no_stacks(text: str) -> None:
    assert stacks_of(text.splitlines()) == {}
    assert "".join(user_first(text.splitlines(), None)) == text.replace("\n", "")
