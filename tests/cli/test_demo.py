"""`jupyter tfguard demo`: the README's first command, as a user reads it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import without_pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and cgroups of Linux")


@pytest.fixture
def environment(data_folder: Path, tmp_path: Path) -> dict[str, str]:
    private = {"TFGUARD_DIR": str(data_folder), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    return without_pytest(os.environ) | private | {"IPYTHONDIR": str(tmp_path / "ipython")}


def test_the_demo_explains_each_death_and_ends_by_itself(environment: dict[str, str]) -> None:
    call = [sys.executable, "-m", "jupyter_tfguard", "demo"]
    done = subprocess.run(
        call, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    stories = done.stdout.split("─" * 100)[1:-1]
    assert len(stories) == 4 or "not allow setting a memory limit" in done.stdout
    if len(stories) == 4:
        flat = " ".join(stories[0].split())
        assert "cgroup_oom (certain)" in flat
        limit = re.search(r"memory limit of its container \((\d+\.\d+ GiB)\)", flat)
        assert limit
        assert f"the limit is {limit[1]}" in flat
        assert re.search(r"peak \d+\.\d+ GiB", flat)
        assert "[4] history = model.fit" in flat
        assert "epoch 1 of 5, step 1 of" in flat
        assert re.search(r"batch 2048 × 100 × 100 × 3", flat)
        assert re.search(r"model\.fit\(\.\.\., batch_size=\d+\)", flat)
    elif os.environ.get("CI"):
        pytest.fail("no memory limit can be set here")
    assert "tf_check_failed" in stories[-3]
    assert "Unknown flag in XLA_FLAGS" in stories[-3]
    assert "segfault_native (certain)" in stories[-2]
    assert "in poke" in stories[-2]
    assert "sigkill_unattributed" in stories[-1]
    assert not re.search(r"out.of.memory|\bOOM\b", stories[-1], re.IGNORECASE)


def test_a_demo_that_is_ended_from_outside_leaves_no_server(environment: dict[str, str]) -> None:
    call = [sys.executable, "-m", "jupyter_tfguard", "demo"]
    demo = subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("1 of "):
            break
    started = psutil.Process(demo.pid).children(recursive=True)
    assert started
    demo.send_signal(signal.SIGTERM)
    demo.stdout.close()
    assert demo.wait(60) != 0
    _, alive = psutil.wait_procs(started, timeout=120)
    assert alive == []
