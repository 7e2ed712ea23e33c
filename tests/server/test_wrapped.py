"""Kernels behind a script that does not `exec`: the process that the server knows is the script's, and its exit code says 128 more."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from traitlets.config import Config

from .conftest import Server, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="exit status by waitid")


@pytest.fixture
def jp_server_config(
    jp_server_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    spec = tmp_path / "more" / "kernels" / "wrapped"
    spec.mkdir(parents=True)
    script = tmp_path / "module-load-and-run.sh"
    script.write_text('"$@"\nexit $?\n')
    launcher = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": ["bash", str(script), *launcher], "display_name": "W", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(kernel))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "more"))
    return jp_server_config


async def start(server: Server, data_folder: Path) -> tuple[str, int]:
    """The kernel's id, and the process id of the kernel itself."""
    answer = await server.fetch("api", "kernels", method="POST", body='{"name": "wrapped"}')
    kernel_id: str = json.loads(answer.body)["id"]

    def recording() -> str | None:
        folder = data_folder / "recordings"
        return next(iter(os.listdir(folder)), None) if folder.is_dir() else None

    name = await until(recording, 60, "the kernel's recording")
    await server.execute(kernel_id, "held = bytearray(300 << 20)")
    return kernel_id, int(name.partition("-")[0])


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (signal.SIGKILL, "sigkill_unattributed"),
        (signal.SIGSEGV, "segfault_native"),
        (signal.SIGTERM, "terminated_by_user_or_manager"),
    ],
)
async def test_the_signal_behind_the_exit_code_is_told_once_and_never_as_certain(
    server: Server, data_folder: Path, number: signal.Signals, cause: str
) -> None:
    kernel_id, pid = await start(server, data_folder)
    os.kill(pid, number)
    [crash] = await server.crashes(1)
    assert (crash["cause"], crash["confidence"]) == (cause, "likely")
    assert (crash["kernel_id"], crash["pid"]) == (kernel_id, pid)
    report = await server.get("crashes", crash["id"])
    told = " ".join(fact["text"] for fact in report["evidence"])
    assert (
        f"exit code {128 + number}, which stands for signal {int(number)} ({number.name})" in told
    )
    assert "The exit status" not in told
    reporter = server.app.web_app.settings["tfguard_service"]._reporter
    await asyncio.to_thread(reporter.report_orphans)  # the kernel's own recording went into it
    assert len((await server.get("crashes"))["crashes"]) == 1


async def test_an_exit_code_of_the_kernels_own_is_passed_on_as_one(
    server: Server, data_folder: Path
) -> None:
    kernel_id, pid = await start(server, data_folder)
    await server.execute(kernel_id, "import os; os._exit(3)")
    [crash] = await server.crashes(1)
    assert (crash["cause"], crash["confidence"], crash["pid"]) == ("sys_exit", "likely", pid)
