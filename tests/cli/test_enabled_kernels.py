"""Kernels of other environments that got the guard by `jupyter tfguard enable`, started for real."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.enable_rig import CONFIG_FILE, enable
from tests.crash.conftest import Kernel, RecordingServer
from tests.rigs.environments import write_kernel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="virtual environments of POSIX")


@pytest.fixture
def server(home: Path, tmp_path: Path) -> Iterator[RecordingServer]:
    found = RecordingServer(tmp_path / "work", home / "tfguard")
    yield found
    found.stop()


LOOK = """
import os, sys
assert os.environ["OWN"] == "1" and os.environ["PYTHONPATH"].endswith("mine"), os.environ
assert not [p for p in sys.path if "tfguard" in p]
assert users_own == 1
found = ("jupyter_tfguard" in sys.modules, sys.modules["ipykernel"].__version__)
import builtins, ctypes; ctypes.CDLL(None).perror(b"stderr tail of %d" % os.getpid())
assert found[0] is GUARDED, found
"""


def look_and_die(server: RecordingServer, *, guarded: bool) -> dict[str, Any]:
    """The report of a kernel of the other environment, in which all was as it should be."""
    kernel = Kernel(server, "guarded" if guarded else "bare", "other")
    try:
        ran = kernel.run(LOOK.replace("GUARDED", str(guarded)))
        assert ran["status"] == "ok", ran
        if guarded:
            kernel.wait_until_watched()
        return die(kernel)
    finally:
        kernel.close()


@pytest.mark.parametrize("environment", ["linked", "older"])
def test_a_kernel_of_another_environment_is_guarded_and_off_ends_it(
    environment: str,
    server: RecordingServer,
    kernels: Path,
    home: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Its recording tells what only the kernel can know, the user's own settings hold, and --off leaves nothing."""
    python: Path = request.getfixturevalue(environment)
    before = write_kernel(kernels / "other", python)
    profile = home / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    own = 'c.InteractiveShellApp.exec_lines = ["users_own = 1"]\nc.InteractiveShellApp.extensions = ["autoreload"]\n'
    (profile / "ipython_kernel_config.py").write_text(own)
    versions = enable("other")["versions"]
    assert (environment == "older") == versions["ipykernel"].startswith("6.29")
    report = look_and_die(server, guarded=True)
    assert report["cause"] == "sigkill_unattributed"
    assert any("time.sleep(100)" in str(fact) for fact in report["activity"])
    assert "stderr tail of" in json.dumps(report)
    enable("other", "--off")
    assert (kernels / "other/kernel.json").read_bytes() == before.encode()
    report = look_and_die(server, guarded=False)
    assert report["activity"] == []
    assert any("guard was not loaded" in line for line in report["not_checked"])


def die(kernel: Kernel) -> dict[str, Any]:
    kernel.sleep()
    os.kill(kernel.pid, signal.SIGKILL)
    return kernel.report()


def test_without_a_server_the_kernel_sets_memory_growth_itself(
    kernels: Path, linked: Path, home: Path
) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    code = "import os; print(os.environ.get('TF_FORCE_GPU_ALLOW_GROWTH'))"
    assert run_alone(code) == "true\n"
    enable("other", "--off")
    assert run_alone(code) == "None\n"


def test_the_doctor_in_such_a_kernel_finds_no_fault_with_it(
    kernels: Path, linked: Path, home: Path
) -> None:
    """Nothing of ours is installed there, neither a startup file nor a panel: that is as it should be."""
    write_kernel(kernels / "other", linked)
    enable("other")
    text = run_alone("%tfguard doctor")
    text = text.replace("\n  ", " ")
    assert "guard loaded into kernels" in text
    assert "recording of a killed process" in text
    assert not [line for line in text.splitlines() if line.startswith(("✕", "?"))], text
    assert "server extension" not in text


def test_a_guard_that_vanished_leaves_a_kernel_that_starts(
    kernels: Path, linked: Path, home: Path
) -> None:
    write_kernel(kernels / "other", linked)
    enable("other")
    file = kernels / "other/kernel.json"
    content = json.loads(file.read_text())
    for path in ("/gone", str(broken_package(home))):
        content["argv"][-1] = f"--config={path}/{CONFIG_FILE}"
        file.write_text(json.dumps(content))
        assert run_alone("print(1 + 1)") == "2\n"


def broken_package(home: Path) -> Path:
    """A tfguard of which an uninstall left half."""
    import jupyter_tfguard

    there = home / "half" / "jupyter_tfguard"
    (there / "kernel").mkdir(parents=True)
    package = Path(jupyter_tfguard.__file__).parent
    for name in ("__init__.py", "_version.py", "kernel/enabled_config.py", "kernel/autoload.py"):
        shutil.copy(package / name, there / name)
    return there.parent


_ALONE = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="other", startup_timeout=120)
printed = []
def keep(message):
    if message["msg_type"] in ("stream", "error"):
        printed.append(message["content"].get("text") or str(message["content"]))
client.execute_interactive(sys.argv[1], output_hook=keep, timeout=120)
client.stop_channels(); manager.shutdown_kernel()
print("".join(printed), end="")
"""


def run_alone(code: str) -> str:
    """What a cell prints in the kernel, started without a server."""
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
