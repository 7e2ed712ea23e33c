"""System calls that fail: nothing dies, no cell notices, what is lost is told. The big count: tests/rigs/faults.py."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.rig import GuardedKernel, guarded_kernel
from tests.rigs.faults import BAD, build, compiler, preloaded

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or compiler() is None, reason="needs Linux and a C compiler"
)

ROOT = Path(__file__).parents[2]
LIVES = 40


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("library"))


def test_many_lives_with_a_fault_each(library: Path) -> None:
    command = [sys.executable, "-m", "tests.rigs.faults", "--json", "--count", str(LIVES)]
    run = subprocess.run(
        command, cwd=ROOT, env=preloaded(library), capture_output=True, text=True, check=False
    )
    totals = json.loads(run.stdout)
    assert {name: totals.get(name) for name in BAD} == dict.fromkeys(BAD, 0), totals
    assert totals["lives"] == LIVES
    assert totals["lives_with_a_fault"] > 0.8 * LIVES
    assert totals["lives_that_lost_something"] > 0.1 * LIVES  # or nothing was tested
    for call in ("splice", "pipe"):
        assert totals["by_call"][call] > 0, totals
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("call", "nth", "code", "mode"),
    [
        ("*", 1, errno.EACCES, "a"),  # nothing may be written from the start on
        ("pwrite", 12, errno.EIO, "f"),
    ],
)
def test_a_real_kernel_goes_on_and_tells(
    tmp_path: Path, library: Path, call: str, nth: int, code: int, mode: str
) -> None:
    log = tmp_path / "faults.txt"
    environment = {
        "LD_PRELOAD": str(library),
        "TFG_FAULT_DIR": str(tmp_path / "tfguard"),
        "TFG_FAULT": f"{call}:{nth}:{code}:{mode}",
        "TFG_FAULT_LOG": str(log),
    }
    with guarded_kernel(tmp_path, environment=environment) as kernel:
        assert kernel.run("1 + 1").result == "2"
        native = kernel.run("import os; _ = os.write(2, b'native words\\n'); print('printed')")
        assert native.error is None
        assert native.stdout == "printed\n"
        assert "native words" in native.stderr
        forked = kernel.run(
            "pid = os.fork()\nif pid == 0:\n    os._exit(0)\nprint(os.waitpid(pid, 0)[1])"
        )
        assert forked.stdout == "0\n"
        assert kernel.run("1 / 0").error == "ZeroDivisionError"
        status = kernel.run("%tfguard status")
        assert status.error is None
        assert log.read_text().splitlines(), "no call failed"
        # Where nothing can be written the kernel itself knows.
        noted = kernel.problems().splitlines()
        assert noted or "Problem:" in status.stdout, status
        assert len(set(noted)) == len(noted)
        shut_down(kernel)


def test_user_code_that_takes_all_descriptors(tmp_path: Path) -> None:
    """A real EMFILE, in the user's own cell; the guard's parts that are open go on, and what they cannot open is noted."""
    take = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
taken = []
try:
    while True:
        taken.append(os.open('/dev/null', os.O_RDONLY))
except OSError as full:
    print(full.errno)
os.write(2, b'words ' * 200)
time.sleep(1.5)
"""
    with guarded_kernel(tmp_path) as kernel:
        # Without descriptors IPython's own history says so, into whichever cell is running.
        kernel.run("get_ipython().history_manager.enabled = False")
        ran = kernel.run(take)
        assert (ran.error, ran.stdout) == (None, f"{errno.EMFILE}\n")
        assert kernel.run("2 + 2").result == "4"
        assert (
            kernel.run("[os.close(number) for number in taken]; len(taken) > 50").result == "True"
        )
        contents = kernel.recording()
        starts = [event for event in contents.events if event["kind"] == "cell_start"]
        assert len(starts) == 4
        assert contents.samples[-1].time > starts[2]["t"]
        shut_down(kernel)


def shut_down(kernel: GuardedKernel) -> None:
    process = kernel.manager.provisioner.process
    kernel.shutdown()
    assert process.wait(20) == 0
