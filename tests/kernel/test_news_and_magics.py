"""What the next kernel says of the last one's death, and what the user can ask."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from jupyter_tfguard.record.bundle import READ, BundleStore
from tests.kernel.rig import GuardedKernel
from tests.rigs.waiting import wait_until

Make = Callable[..., GuardedKernel]
DEATH = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"


def test_nothing_on_record_is_a_plain_answer(kernel: GuardedKernel) -> None:
    assert kernel.run("%tfguard why").text == "No reports: tfguard has recorded no crash yet.\n"


def test_status_reports_memory_and_limit(kernel: GuardedKernel) -> None:
    lines = kernel.run("%tfguard").stdout.splitlines()
    assert lines == kernel.run("%tfguard status").stdout.splitlines()[:1] + lines[1:]
    assert lines[0].startswith("tfguard 0.")
    assert "resident memory of this kernel" in lines[1]
    assert "GiB of" in lines[1] or "MiB of" in lines[1]
    assert "(machine memory)" in lines[1] or "(container limit)" in lines[1]
    assert lines[-1] == "Last crash: none recorded"
    assert "growth" not in "".join(lines)


def test_doctor_says_what_the_command_says_and_imports_nothing_heavy(kernel: GuardedKernel) -> None:
    text = kernel.run("%tfguard doctor").stdout
    assert "recording of a killed process" in text
    assert "TensorFlow" in text
    assert text.splitlines()[-1].endswith(" ok")
    look = "import sys; print([m for m in ('tensorflow', 'keras', 'jupyter_server') if m in sys.modules])"
    assert kernel.run(look).stdout == "[]\n"
    assert len(kernel.recording_paths()) == 1
    assert kernel.problems() == ""


def test_a_wrong_word_is_answered_with_the_usage(kernel: GuardedKernel) -> None:
    ran = kernel.run("%tfguard nonsense")
    assert "nonsense" in ran.text
    assert "why" in ran.text


def test_the_next_kernel_reports_and_announces_an_unwatched_crash_once(new_kernel: Make) -> None:
    first = new_kernel()
    assert first.die(DEATH) == -signal.SIGKILL
    dead = first.recording_paths()
    assert len(dead) == 1
    first.close()
    # The same kernel again, as a kernel manager restarts it: same connection file.
    second = new_kernel(kernel_id=first.kernel_id)

    def announced() -> list[str] | None:
        # The report may not be ready in the quarter second that the first cell waits.
        lines: list[str] = second.run("print('mine')").stdout.splitlines()
        return lines if lines != ["mine"] else None

    lines = wait_until(announced, "the two lines")
    assert lines[0].startswith("tfguard: the last kernel died")
    assert lines[-2].endswith("Details: %tfguard why")
    assert lines[-1] == "mine"
    assert second.run("print('mine')").stdout == "mine\n"
    assert not dead[0].exists()
    told = second.run("%tfguard why").stdout
    assert "SIGKILL" in told
    assert not told.startswith("Crash of")
    assert "memory limit" not in told.splitlines()[0].lower()
    assert "There is 1 report" in second.run("%tfguard why --crash 2").stdout
    assert second.run("%tfguard").stdout.splitlines()[-1].startswith("Last crash: 20")


def test_a_death_that_was_read_is_not_printed(new_kernel: Make) -> None:
    first = new_kernel()
    first.die(DEATH)
    other = new_kernel()
    assert "SIGKILL" in other.run("%tfguard why").stdout  # another notebook reports it
    store = BundleStore(first.data / "bundles")
    store.mark(store.ids()[0], READ)
    second = new_kernel(kernel_id=first.kernel_id)
    assert second.run("print('mine')").stdout == "mine\n"
    assert second.run("print('mine')").stdout == "mine\n"


def test_visitors_of_a_voila_page_see_nothing_of_a_crash(new_kernel: Make) -> None:
    first = new_kernel()
    first.die(DEATH)
    page = {"VOILA_REQUEST_URL": "http://localhost:8866/voila/render/train.ipynb"}
    second = new_kernel(kernel_id=first.kernel_id, environment=page)
    # Once the report is there, a page of a notebook would print it at the next cell.
    assert "SIGKILL" in second.run("%tfguard why").stdout
    assert second.run("print('mine')").stdout == "mine\n"
    [report] = BundleStore(first.data / "bundles").entries()
    assert not report["announced"]


def test_another_notebooks_crash_is_reported_but_not_announced(new_kernel: Make) -> None:
    first = new_kernel()
    first.die(DEATH)
    other = new_kernel()
    assert other.run("print('mine')").stdout == "mine\n"
    told = other.run("%tfguard why").stdout
    assert told.startswith("Crash of another kernel (process ")
    assert "SIGKILL" in told


def test_why_waits_for_the_report_that_is_being_made(new_kernel: Make) -> None:
    kernel = new_kernel()
    code = (
        "import threading, time\n"
        "from jupyter_tfguard.kernel.current import current\n"
        "reported = current().news._reported\n"
        "reported.clear()\n"
        "threading.Timer(1.0, reported.set).start()\n"
        "%tfguard why\n"
        "print(reported.is_set())"
    )
    assert kernel.run(code).stdout.endswith("True\n")


def test_a_living_watcher_is_left_to_report(new_kernel: Make) -> None:
    watched = {"TFGUARD_WATCHER_PID": str(os.getpid())}
    first = new_kernel(environment=watched)
    first.die(DEATH)
    second = new_kernel(environment=watched, kernel_id=first.kernel_id)
    assert second.run("print('mine')").stdout == "mine\n"
    assert len(second.recording_paths()) == 2
