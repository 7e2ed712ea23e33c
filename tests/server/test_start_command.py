"""A start command that leaves the kernel in the background and ends: the server takes that for the kernel's end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from traitlets.config import Config

from tests.crash.settings import write_setting
from tests.rigs.waiting import wait_until_async

from .conftest import Server

LEAVES = """
import subprocess, sys
kernel = subprocess.Popen([sys.executable, "-m", "ipykernel_launcher", "-f", sys.argv[2]], start_new_session=True)
open(sys.argv[1], "a").write(f"{kernel.pid}\\n")
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="exit status by waitid")


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """A file with a line for each kernel that was left running."""
    path = tmp_path / "left.txt"
    path.touch()
    yield path
    for pid in map(int, path.read_text().split()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def jp_server_config(
    jp_server_config: Config, tmp_path: Path, left: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    argv = [sys.executable, "-S", "-c", LEAVES, str(left), "{connection_file}"]
    write_setting(tmp_path / "more" / "kernels", "leaves", argv)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "more"))
    jp_server_config.KernelRestarter.time_to_dead = 1.0
    jp_server_config.KernelRestarter.restart_limit = 1
    return jp_server_config


async def test_it_is_a_sentence_and_no_storm_of_reports(server: Server, left: Path) -> None:
    answer = await server.fetch("api", "kernels", method="POST", body='{"name": "leaves"}')
    manager = server.app.kernel_manager.get_kernel(json.loads(answer.body)["id"])
    gone: list[str] = []
    manager.add_restart_callback(lambda: gone.append("dead"), "dead")
    await wait_until_async(lambda: gone, "the server to give up")

    async def said() -> list[dict[str, str]]:
        problems: list[dict[str, str]] = (await server.get("status"))["problems"]
        return problems

    [problem] = await wait_until_async(said, "a sentence about the start command")
    assert "leaves" in problem["what"]
    assert "exit code 0" in problem["what"]
    assert "kernel.json" in problem["fix"]
    assert left.read_text().count("\n") == 2
    # All reports are made one after the other: this waits for them.
    reports = server.app.web_app.settings["tfguard_service"]._watcher._crashes._thread
    reports.submit(lambda: None).result(60)
    assert server.events == []
    assert (await server.get("crashes"))["crashes"] == []
