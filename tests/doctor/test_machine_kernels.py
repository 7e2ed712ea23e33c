"""The doctor before kernels with and without the guard: those that could be started, and those that run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_tfguard.doctor.check import CheckResult, Status
from jupyter_tfguard.doctor.checks import installation, kernel_environments, running_kernels
from jupyter_tfguard.doctor.environment import Environment
from jupyter_tfguard.kernelspecs.enable import disable, enable
from tests.rigs.environments import write_kernel
from tests.rigs.made_machine import MadeMachine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="virtual environments and /proc")


def install_tensorflow(python: Path) -> Path:
    """Metadata of a TensorFlow, which is all that the doctor reads of it."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    info = site / "tensorflow_cpu-2.15.1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: 2.15.1\n")
    return info


# --- kernels of other environments


def environments() -> list[CheckResult]:
    return kernel_environments.check(Environment.here()) or []


def test_kernels_of_this_environment_need_no_word(home: Path) -> None:
    assert environments() == []


def test_a_kernel_without_the_guard_is_a_warning_if_it_has_tensorflow(
    kernels: Path, linked: Path
) -> None:
    write_kernel(kernels / "other", linked)
    (found,) = environments()
    assert found.status is Status.OK
    info = install_tensorflow(linked)
    try:
        (found,) = environments()
        assert found.status is Status.WARNING
        assert "TensorFlow 2.15.1" in found.text
        assert found.fix == "jupyter tfguard enable --kernel other"
        enable("other")
        (found,) = environments()
        assert found.status is Status.OK
        disable("other")
        assert environments()[0].status is Status.WARNING
    finally:
        (info / "METADATA").unlink()
        info.rmdir()


def test_a_guard_that_moved_away_is_reported(kernels: Path, linked: Path) -> None:
    argv = [str(linked), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    given = "--config=/gone/jupyter_tfguard/kernel/enabled_config.py"
    write_kernel(kernels / "other", linked, argv=[*argv, given])
    (found,) = environments()
    assert found.status is Status.WARNING
    assert "/gone/" in found.text
    assert found.fix == "jupyter tfguard enable --kernel other"


def test_a_kernel_whose_interpreter_is_gone_can_be_removed(kernels: Path) -> None:
    write_kernel(kernels / "orphan", Path("/nowhere/bin/python"))
    (found,) = environments()
    assert found.status is Status.WARNING
    assert found.fix == "jupyter kernelspec remove orphan"


def test_an_interpreter_that_hangs_is_given_up(
    kernels: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_environments, "_ASK_SECONDS", 0.2)
    python = home / "python"
    python.write_text("#!/bin/sh\nexec sleep 30\n")
    python.chmod(0o700)
    write_kernel(kernels / "slow", python)
    (found,) = environments()
    assert found.status is Status.UNKNOWN
    assert "did not answer" in found.text


def test_what_another_program_starts_is_not_run(kernels: Path, home: Path) -> None:
    mark = home / "was-run"
    argv = ["touch", str(mark), "python", "-m", "ipykernel_launcher"]
    write_kernel(kernels / "wrapped", Path("python"), argv=argv)
    write_kernel(kernels / "julia", Path("julia"), argv=["touch", str(mark)])
    assert environments() == []
    assert not mark.exists()


# --- kernels that run


@pytest.fixture
def running(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that look like kernels; those of others on this machine are not looked at."""
    started: list[subprocess.Popen[bytes]] = []
    real = running_kernels.running_kernels
    monkeypatch.setattr(running_kernels, "_STARTING_SECONDS", -3600.0)
    monkeypatch.setattr(
        running_kernels,
        "running_kernels",
        lambda machine: [k for k in real(machine) if k.pid in [p.pid for p in started]],
    )

    def start(python: Path, *words: str, **environ: str) -> subprocess.Popen[bytes]:
        # `-c` ends Python's own options: what follows only looks like a kernel's command.
        code = "print(flush=True); import time; time.sleep(600)"
        command = [str(python), "-c", code, "-m", "ipykernel_launcher", *words]
        process = subprocess.Popen(command, env=os.environ | environ, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


Start = Callable[..., "subprocess.Popen[bytes]"]


def test_no_kernels_no_word(running: Start) -> None:
    assert running_kernels.check(Environment.here()) is None


def test_a_kernel_whose_environment_lacks_the_guard(
    running: Start, linked: Path, home: Path
) -> None:
    connection = home / "kernel-1.json"
    connection.write_text('{"kernel_name": "other"}')
    write_kernel(home / "data/kernels/other", linked)
    process = running(linked, "-f", str(connection), JPY_SESSION_NAME="/a/b/train.ipynb")
    (found,) = running_kernels.check(Environment.here()) or []
    assert found.status is Status.WARNING
    assert found.text.startswith(f"train.ipynb (process {process.pid}) has no guard")
    assert str(linked.parents[1]) in found.text
    assert found.fix == "jupyter tfguard enable --kernel other"
    enable("other")
    (found,) = running_kernels.check(Environment.here()) or []
    assert "start it again" in found.text


@pytest.mark.parametrize("name", ["python3", "xpython", "unknown"])
def test_a_kernel_that_enable_from_here_does_not_reach_is_not_sent_there(
    running: Start, linked: Path, kernels: Path, home: Path, name: str
) -> None:
    """Another Jupyter started it: here the name stands for another environment, another program, or nothing."""
    write_kernel(kernels / "xpython", linked, argv=["xpython", "-f", "{connection_file}"])
    (home / "kernel-1.json").write_text(f'{{"kernel_name": "{name}"}}')
    running(linked, "-f", str(home / "kernel-1.json"))
    (found,) = running_kernels.check(Environment.here()) or []
    assert found.fix == f"{linked} -m pip install jupyter-tfguard"


def test_a_kernel_with_a_configuration_of_its_own_is_not_sent_to_enable(
    kernels: Path, linked: Path
) -> None:
    argv = [str(linked), "-m", "ipykernel_launcher", "--config=/my/own.py", "-f", "{x}"]
    write_kernel(kernels / "other", linked, argv=argv)
    info = install_tensorflow(linked)
    try:
        (found,) = environments()
        assert found.fix == f"{linked} -m pip install jupyter-tfguard"
    finally:
        (info / "METADATA").unlink()
        info.rmdir()


def test_a_recorded_kernel_is_fine(running: Start, linked: Path, home: Path) -> None:
    process = running(linked)
    start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    (home / "tfguard" / "recordings" / f"{process.pid}-{start}").mkdir(parents=True)
    (found,) = running_kernels.check(Environment.here()) or []
    assert (found.status, found.text) == (Status.OK, "1, with the guard")


def test_the_variable_that_switches_it_off_is_named(running: Start, linked: Path) -> None:
    running(linked, TFGUARD_DISABLE="1")
    (found,) = running_kernels.check(Environment.here()) or []
    assert "TFGUARD_DISABLE is set" in found.text


def test_a_kernel_older_than_the_guard_is_to_be_restarted(running: Start, linked: Path) -> None:
    running(linked)
    startup = linked.parents[1] / "etc/ipython/startup"
    startup.mkdir(parents=True, exist_ok=True)
    time.sleep(0.3)
    (startup / "00-tfguard.py").touch()
    try:
        (found,) = running_kernels.check(Environment.here()) or []
        assert "Restart it" in found.text
    finally:
        (startup / "00-tfguard.py").unlink()


# --- the startup file of this environment


def guarded(tmp_path: Path) -> tuple[MadeMachine, Path]:
    made = MadeMachine(tmp_path)
    made.package("jupyter-tfguard", "0.1.0")
    startup = made.prefix / "etc/ipython/startup"
    startup.mkdir(parents=True)
    (startup / "00-tfguard.py").touch()
    return made, startup


def test_a_startup_file_that_is_there_is_fine(tmp_path: Path) -> None:
    made, _ = guarded(tmp_path)
    found = installation.check(made.environment())[0]
    assert found.status is Status.OK


def test_a_missing_startup_file_is_a_problem_with_its_cure(tmp_path: Path) -> None:
    made, startup = guarded(tmp_path)
    (startup / "00-tfguard.py").unlink()
    found = installation.check(made.environment())[0]
    assert found.status is Status.PROBLEM
    assert "--force-reinstall" in str(found.fix)


def test_the_interpreter_of_this_process_is_no_other_environment(kernels: Path, home: Path) -> None:
    """A kernel with another path of the same interpreter, as a link makes one."""
    write_kernel(kernels / "same", Path(sys.executable))
    here = replace(Environment.here(), python="/another/python")
    assert kernel_environments.check(here) is None
