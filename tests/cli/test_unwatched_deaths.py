"""`jupyter tfguard why` after the death of a kernel that no server watched: VS Code, papermill, scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

from jupyter_tfguard.demo.limits import NoLimitPossible, make_limit
from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.record.bundle import BundleStore
from tests.conftest import without_pytest, write_options
from tests.crash.conftest import no_cgroup
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and cgroups of Linux")


@pytest.fixture
def environment(data_folder: Path, tmp_path: Path) -> dict[str, str]:
    write_options(tmp_path / "config", "off")
    private = {
        "TFGUARD_DIR": str(data_folder),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
    }
    return without_pytest(os.environ) | private


@pytest.fixture
def manager(environment: dict[str, str]) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment)
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def command(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "jupyter_tfguard", *words]
    return subprocess.run(
        call, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def entries(environment: dict[str, str]) -> list[dict[str, Any]]:
    done = command(environment, "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["crashes"]
    return found


def die(manager: tuple[KernelManager, BlockingKernelClient], code: str) -> None:
    kernels, client = manager
    client.execute(code)
    process = kernels.provisioner.process
    wait_until(lambda: process.poll() is not None, "the kernel's end")


@pytest.mark.parametrize(
    ("code", "cause", "confidence"),
    [
        ("import ctypes; ctypes.string_at(0)", "segfault_native", "likely"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
            "terminated_by_user_or_manager",
            "likely",
        ),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "sigkill_unattributed",
            "likely",
        ),
        ("import os; os._exit(3)", "sys_exit", "likely"),
        ("quit()", "sys_exit", "likely"),
    ],
    ids=["segfault", "SIGTERM", "SIGKILL", "exit code", "quit"],
)
def test_the_record_alone_reports_and_is_never_certain(
    manager: tuple[KernelManager, BlockingKernelClient],
    environment: dict[str, str],
    code: str,
    cause: str,
    confidence: str,
) -> None:
    die(manager, code)
    (entry,) = entries(environment)
    assert (entry["cause"], entry["confidence"]) == (cause, confidence)
    printed = command(environment, "why")
    assert printed.returncode == 0
    assert entry["title"] in " ".join(printed.stdout.split())
    # The helper process reads the exit status. quit() is an orderly end, which dismisses it.
    unread = "no server saw the crash" in " ".join(printed.stdout.split())
    assert unread == (code == "quit()")
    again = command(environment, "why", entry["id"][:20])
    assert again.stdout == printed.stdout


def test_a_memory_limit_is_known_from_the_counters_of_the_group(
    manager: tuple[KernelManager, BlockingKernelClient],
    environment: dict[str, str],
    data_folder: Path,
) -> None:
    try:
        limit = make_limit(300 << 20)
    except NoLimitPossible as no:
        no_cgroup(str(no))
    kernels, client = manager
    try:
        limit.add(kernels.provisioner.pid)
        client.execute("import time; time.sleep(2.5)")
        die(
            manager,
            "held = []\nwhile True:\n    held.append(bytearray(b'x' * (8 << 20)))\n    time.sleep(0.05)",
        )
        (entry,) = entries(environment)
    finally:
        limit.remove()
    assert entry["cause"] == "cgroup_oom"
    assert entry["confidence"] == "likely"
    # Most users may not read the system log; the counters say it too.
    bundle = BundleStore(data_folder / "bundles").bundle(entry["id"])
    bundle["system_log"] = None
    best = diagnose(bundle).best
    assert (best.cause, best.confidence.value) == ("cgroup_oom", "likely")
    assert "300 MiB" in best.title


def test_nothing_has_died_is_a_sentence_and_an_empty_list(environment: dict[str, str]) -> None:
    assert entries(environment) == []
    done = command(environment, "why")
    assert done.returncode == 0
    assert "No reports" in done.stdout


def test_an_unknown_id_is_a_sentence_not_a_traceback(environment: dict[str, str]) -> None:
    for words, said in (
        ("nonsense", "No report has the id"),
        ("20260101-000000-1-abcd", "No report has the id"),
        ("../../etc/passwd", "exported report"),  # a path is that of a bundle
    ):
        done = command(environment, "why", words)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_living_kernel_is_not_reported(
    manager: tuple[KernelManager, BlockingKernelClient], environment: dict[str, str]
) -> None:
    assert entries(environment) == []
    os.kill(manager[0].provisioner.pid, signal.SIGINT)
    assert entries(environment) == []
