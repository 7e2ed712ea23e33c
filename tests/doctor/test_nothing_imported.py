"""The doctor as it is really called: TensorFlow, Keras, CUDA and the driver's library stay out of its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.made_case import healthy
from tests.rigs.made_cases import stack_checks
from tests.rigs.made_machine import MadeMachine

FORBIDDEN = {"tensorflow", "keras", "tf_keras", "pynvml", "torch", "jax"}


def imported(import_times: str) -> set[str]:
    """Top-level names of what ``-X importtime`` lists. Sample: ``import time:  302 |  302 |  zipimport``."""
    lines = [line for line in import_times.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}


def test_the_command_imports_neither_tensorflow_nor_the_drivers_library(tmp_path: Path) -> None:
    private = {"TFGUARD_DIR": str(tmp_path / "d"), "JUPYTER_CONFIG_DIR": str(tmp_path / "c")}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "jupyter_tfguard", "doctor", "--json"],
        env=os.environ | private,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    names = {check["name"] for check in json.loads(done.stdout)["checks"]}
    assert {"TensorFlow", "guard enabled"} <= names
    assert imported(done.stderr) & {"packaging", "jupyter_tfguard"}
    assert not imported(done.stderr) & FORBIDDEN


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no list of mapped files here")
def test_no_library_of_the_driver_or_of_cuda_is_mapped(standin: Path, tmp_path: Path) -> None:
    machine = MadeMachine(tmp_path / "made")
    healthy(machine, standin)
    maps = Path("/proc/self/maps")
    before = maps.read_text()  # another test may have imported TensorFlow here
    told = stack_checks(machine.environment())
    assert "Stand-in A" in told["gpu"][0].text  # so the driver's library was asked
    names = ("libnvidia", "libcuda", "libcudnn", "libtensorflow")
    assert not [name for name in names if maps.read_text().count(name) > before.count(name)]
