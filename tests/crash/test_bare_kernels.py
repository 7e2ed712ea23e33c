"""A kernel that the guard is not loaded in: the server alone tells what it can, and says what it could not see."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_tfguard.report import text
from tests.crash.conftest import Kernel, RecordingServer
from tests.crash.settings import write_setting
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals of Linux")


@pytest.fixture
def bare_kernel(server: RecordingServer) -> Iterator[Kernel]:
    """A kernel whose own environment knows nothing of tfguard: no startup file is read, no package is found."""
    code = "import sys; sys.modules['jupyter_tfguard'] = None; from ipykernel.kernelapp import launch_new_instance as go; go()"
    kernels = Path(os.environ["JUPYTER_DATA_DIR"]) / "kernels"
    write_setting(kernels, "bare", [sys.executable, "-c", code, "-f", "{connection_file}"])
    kernel = Kernel(server, "bare", "bare")
    yield kernel
    kernel.close()


def test_a_kernel_without_the_guard_is_still_reported(bare_kernel: Kernel) -> None:
    assert (
        bare_kernel.run("import sys; assert sys.modules['jupyter_tfguard'] is None")["status"]
        == "ok"
    )
    bare_kernel.sleep()
    # The server reads name and memory once a second.
    wait_until(lambda: bare_kernel.state().get("notebook_path"), "the notebook's name")
    wait_until(lambda: bare_kernel.state()["host"]["rss_bytes"], "a sample")
    os.kill(bare_kernel.pid, signal.SIGKILL)
    report = bare_kernel.report()
    assert report["cause"] == "sigkill_unattributed"
    assert report["notebook_path"] == "bare.ipynb"
    assert report["memory"]["samples"]
    assert report["activity"] == []
    assert any("guard was not loaded" in line for line in report["not_checked"])
    assert "What you were doing" not in text.render(report)


def test_an_abort_without_the_guard_is_unknown_with_advice(bare_kernel: Kernel) -> None:
    bare_kernel.start("import os; os.abort()")
    report = bare_kernel.report()
    assert report["cause"] == "unknown"
    assert "SIGABRT" in report["title"]
    assert report["advice"][0]["code"] == "python -m pip install jupyter-tfguard"
