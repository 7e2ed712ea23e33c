"""A hang that waits for something outside the process is never certain, and says what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

CELL = '  File "/tmp/ipykernel_4711/2093841.py", line 4 in load'
KERNEL = '  File "/opt/env/lib/python3.11/site-packages/ipykernel/iostream.py", line 90 in run'
LIB = "/opt/env/lib/python3.11"


def hung(wait: str, main: list[str], other: list[str] | None = None, **changed: Any) -> Finding:
    """The finding of a kernel whose user stopped it; `main` and `other`: frames of two threads, ``file function``."""
    bundle = bundle_of("hang/fires-a-join-that-never-ends.json")
    killed, whose = changed.pop("worker_killed", None), changed.pop("worker_of", "k1")
    if killed is not None:
        child = {"cause": "child_oom_killed", "kernel_alive": True, "died": killed}
        bundle["earlier_deaths"] = [child | {"kernel_id": whose, "notebook_path": "train.ipynb"}]
    bundle["kernel"]["events"] = [
        {"kind": "import", "t": NOTICED - 480, "module": "tensorflow"},
        {"kind": "cell_start", "t": NOTICED - 400, "execution_count": 3, "head": "run()"},
    ]
    frames = {name: _frames(lines) for name, lines in (("0x1", main), ("0x2", other or []))}
    hang = bundle["server"]["hang"]
    hang |= {"wait": wait, "main_thread": "0x1", **changed}
    hang["stacks"] = [
        line
        for name, lines in frames.items()
        for line in [f"Thread {name} (most recent call first):", *lines, ""]
    ]
    return diagnose(bundle).best


def _frames(lines: list[str]) -> list[str]:
    found = []
    for line in lines:
        file, _, name = line.partition(" ")
        found.append(line if line.startswith("  ") else f'  File "{LIB}/{file}", line 9 in {name}')
    return found


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        (["socket.py readinto", "http/client.py _read_status", CELL], "a connection"),
        (["ssl.py recv_into", CELL], "a connection"),
        (["subprocess.py _try_wait", "subprocess.py wait", CELL], "a child process"),
        (["selectors.py select", "subprocess.py _communicate", CELL], "a child process"),
        (["multiprocessing/popen_fork.py poll", CELL], "a child process"),
        (["multiprocessing/connection.py _recv", CELL], "another process"),
        ([CELL], "a file, a connection or a child process"),
    ],
)
def test_a_wait_outside_the_process_is_likely_and_named(frames: list[str], what: str) -> None:
    found = hung("other", frames)
    assert (found.cause, found.confidence) == ("hang", Confidence.LIKELY)
    assert f"waited 12 min for {what} without progress" in found.title
    assert any(f"waiting for {what}" in fact.text for fact in found.because)


def test_a_file_system_that_does_not_answer_is_not_certain() -> None:
    found = hung("disk", [CELL])
    assert found.confidence is Confidence.LIKELY
    assert "a disk or a network file system" in found.title


@pytest.mark.parametrize(
    "other", [["ssl.py read", CELL], ["selectors.py select", "multiprocessing/connection.py wait"]]
)
def test_a_lock_that_another_thread_holds_while_it_waits_outside_is_not_certain(
    other: list[str],
) -> None:
    found = hung("lock", ["threading.py wait", "concurrent/futures/_base.py result", CELL], other)
    assert (found.cause, found.confidence) == ("hang", Confidence.LIKELY)
    assert any("Another thread was waiting for" in fact.text for fact in found.because)


def test_forked_children_that_the_lock_may_wait_for_are_not_certain() -> None:
    fork = {"pid": 4800, "started": 1_789_999_260.0, "wait": "other"}
    assert hung("lock", ["threading.py wait", CELL], forks=[fork]).confidence is Confidence.LIKELY


def test_without_stacks_it_is_not_known_what_the_other_threads_did() -> None:
    assert hung("lock", [], main_thread=None).confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "other", [["threading.py wait", CELL], ["socket.py recv", KERNEL], ["ssl.py read", KERNEL]]
)
def test_a_lock_that_nobody_outside_can_release_is_certain(other: list[str]) -> None:
    assert hung("lock", ["threading.py join", CELL], other).confidence is Confidence.CERTAIN


def test_a_stopped_kernel_is_certain() -> None:
    assert hung("stopped", [], main_thread=None).confidence is Confidence.CERTAIN


NOTICED = 1_789_999_580.0
POOL_GET = ["threading.py wait", "multiprocessing/pool.py wait", CELL]


def forks(*waits: str) -> list[dict[str, Any]]:
    return [
        {"pid": 4800 + n, "started": 1_789_999_260.0, "wait": wait} for n, wait in enumerate(waits)
    ]


@pytest.mark.parametrize("waits", [("lock", "other", "lock"), ("lock",)])
def test_a_fit_that_waits_for_a_killed_worker_is_one_story(waits: tuple[str, ...]) -> None:
    found = hung("lock", POOL_GET, forks=forks(*waits), worker_killed=NOTICED - 300)
    assert (found.cause, found.confidence) == ("hang", Confidence.LIKELY)
    assert found.title.startswith("A worker process was killed because memory ran out")
    assert "report of its own" in found.because[0].text
    assert "spawn" not in " ".join(f"{a.title} {a.text} {a.code}" for a in found.advice)


@pytest.mark.parametrize("changed", [{"worker_of": "k2"}, {"worker_killed": NOTICED - 90_000}])
def test_a_worker_killed_elsewhere_or_earlier_is_another_story(changed: dict[str, Any]) -> None:
    found = hung(
        "lock", POOL_GET, forks=forks("lock"), **{"worker_killed": NOTICED - 300} | changed
    )
    assert found.cause == "fork_or_thread_deadlock"


def test_an_idle_pool_is_no_evidence_of_a_deadlock_after_fork() -> None:
    idle = forks("lock", "other", "lock")
    assert hung("lock", ["threading.py join", CELL], forks=idle).cause == "hang"
    waiting = hung("lock", POOL_GET, forks=idle)
    assert (waiting.cause, waiting.confidence) == ("fork_or_thread_deadlock", Confidence.POSSIBLE)
    stuck = hung("lock", POOL_GET, forks=forks("lock", "lock"))
    assert (stuck.cause, stuck.confidence) == ("fork_or_thread_deadlock", Confidence.LIKELY)


def test_a_debugger_and_the_kernel_wait_for_connections_all_the_time() -> None:
    wrapped = '  File "/opt/ipykernel/ipkernel.py", line 766 in run_closure'
    join = ["threading.py join", CELL]
    assert hung("lock", join, ["socket.py recv", wrapped]).confidence is Confidence.LIKELY
    debugger = '  File "/opt/debugpy/_vendored/pydevd/_pydevd_bundle/pydevd_comm.py", line 1 in run'
    assert hung("lock", join, ["socket.py recv", debugger]).confidence is Confidence.CERTAIN


GENERATOR = (
    f'  File "{LIB}/site-packages/tensorflow/python/data/ops/from_generator_op.py", line 198 in f'
)
STEP = f'  File "{LIB}/site-packages/tensorflow/python/eager/execute.py", line 53 in quick_execute'


def test_a_fit_without_steps_in_a_kernel_that_computes_is_possible_and_names_its_generator() -> (
    None
):
    found = hung("running", [STEP, CELL.replace("load", "<module>")], [CELL, GENERATOR])
    assert (found.cause, found.confidence) == ("hang", Confidence.POSSIBLE)
    assert found.title.startswith(
        "The fit made no step for 12 min while the kernel computed, until"
    )
    texts = [fact.text for fact in found.because]
    assert any("no step, although the kernel used CPU time" in text for text in texts)
    assert "Python was at line 4 of the cell, in load" in texts
    assert [one.title for one in found.advice] == ["Run the input pipeline without the model."]


PY_DATASET = '  File "/opt/env/lib/python3.11/site-packages/keras/src/trainers/data_adapters/py_dataset_adapter.py", line 12 in run'
FIT = CELL.replace("load", "<module>")
WAITS = ["threading.py wait", "queue.py get", CELL, GENERATOR]


@pytest.mark.parametrize(
    ("main", "other", "line"),
    [
        ([STEP, FIT], WAITS, "threading.py, line 9, in wait, called from line 4 of the cell, in load"),
        # An idle worker of Keras, and a callback of the user that waits while the generator waits too.
        ([STEP, FIT], ["queue.py get", PY_DATASET], "execute.py, line 53, in quick_execute, called from"),
        (["threading.py wait", CELL, STEP, FIT], WAITS, "threading.py, line 9, in wait, called from"),
    ],
)  # fmt: skip
def test_where_tensorflow_waits_for_the_users_generator_its_line_is_named(
    main: list[str], other: list[str], line: str
) -> None:
    texts = [fact.text for fact in hung("lock", main, other, in_fit=True).because]
    assert any(text.startswith(f"Python was at {line}") for text in texts), texts
