"""The GPU helper with a stand-in for NVIDIA's library: well, absent, hanging, crashing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.watch.gpu_helper import GpuHelper, Gpus
from jupyter_tfguard.watch.process_handle import is_running

from .conftest import until

SOURCE = Path(__file__).parents[1] / "rigs" / "nvml" / "nvml_standin.c"
GIB = 1024**3


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return folder


@pytest.fixture
def choose(standin: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def set_it(behaviour: str) -> None:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(standin))
        monkeypatch.setenv("TFGUARD_STANDIN", behaviour)

    return set_it


@pytest.fixture
def helper(data_folder: Path) -> Iterator[GpuHelper]:
    found = GpuHelper(pauses_seconds=(0.2,), silence_seconds=1.5)
    yield found
    found.stop()


def settle(helper: GpuHelper, state: str, seconds: float = 15.0) -> Gpus:
    def reached() -> bool:
        helper.want()
        return helper.read().state == state

    until(reached, seconds)
    return helper.read()


def test_two_cards_are_listed_and_what_a_card_does_not_know_is_unknown(
    helper: GpuHelper, choose: Callable[[str], None]
) -> None:
    choose("fine")
    assert helper.read() == Gpus("starting")
    first, second = settle(helper, "ok").devices
    assert first == {
        "nvml_index": 0,
        "gpu_uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "name": "Stand-in A",
        "memory_total_bytes": 40 * GIB,
        "memory_used_bytes": 20 * GIB,
        "utilization_fraction": 0.83,
        "temperature_celsius": 71,
        "power_watts": 288.4,
    }
    assert second["memory_used_bytes"] == 0
    assert second["utilization_fraction"] is None
    assert second["power_watts"] is None


def test_it_goes_on_telling(helper: GpuHelper, choose: Callable[[str], None]) -> None:
    choose("fine")
    settle(helper, "ok")
    process = helper._process
    for _ in range(5):
        time.sleep(0.5)
        helper.want()
    assert helper.read().state == "ok"
    assert helper._process is process


@pytest.mark.parametrize(
    ("behaviour", "reason"), [("hang", "does not answer"), ("crash", "crashed")]
)
def test_a_library_that_hangs_or_crashes_is_given_up(
    helper: GpuHelper, choose: Callable[[str], None], behaviour: str, reason: str
) -> None:
    choose(behaviour)
    settle(helper, "ok")
    first = helper._process
    assert first is not None
    assert reason in str(settle(helper, "unavailable").reason)
    settle(helper, "ok")  # started once more after a pause
    second = helper._process
    assert second is not None
    assert second.pid != first.pid
    assert reason in str(settle(helper, "unavailable").reason)
    for _ in range(10):  # and then never again
        helper.want()
        time.sleep(0.1)
    assert helper._process is None
    until(lambda: first.poll() is not None and second.poll() is not None)


def test_a_machine_without_cards_says_so(helper: GpuHelper, choose: Callable[[str], None]) -> None:
    choose("none")
    assert settle(helper, "none") == Gpus("none", "No NVIDIA GPU here")
    helper.want()
    assert helper._process is None


def test_a_driver_that_is_not_loaded_is_said(
    helper: GpuHelper, choose: Callable[[str], None]
) -> None:
    choose("dead")
    assert "Driver Not Loaded" in str(settle(helper, "unavailable").reason)


def test_a_missing_library_means_no_gpu(
    helper: GpuHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libnvidia-ml.so.1"
    broken.write_text("not a library")  # found first, so that a real one is not loaded
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert settle(helper, "none") == Gpus("none", "No NVIDIA GPU here")


def test_stopping_ends_the_process(helper: GpuHelper, choose: Callable[[str], None]) -> None:
    choose("fine")
    settle(helper, "ok")
    process = helper._process
    assert process is not None
    helper.stop()
    assert process.poll() is not None


def test_the_helper_ends_with_its_server(choose: Callable[[str], None]) -> None:
    choose("fine")
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, os, time\n"
            "from jupyter_tfguard.watch.gpu_helper import GpuHelper\n"
            "helper = GpuHelper(); helper.want()\n"
            "while helper.read().state != 'ok': time.sleep(0.05)\n"
            "print(helper._process.pid, flush=True); time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    server.kill()
    server.communicate()
    until(lambda: not is_running(pid))


def test_a_notebook_folder_s_files_are_not_imported(
    helper: GpuHelper,
    choose: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose("fine")
    (tmp_path / "json.py").write_text("raise SystemExit('this is the notebook folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert os.getcwd() == str(tmp_path)
    settle(helper, "ok")
