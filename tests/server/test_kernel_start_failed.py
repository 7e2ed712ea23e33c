"""A kernel that dies before it is up, again and again: the server restarts it until it gives up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from traitlets.config import Config

from tests.crash.settings import write_setting
from tests.rigs.waiting import wait_until_async

from .conftest import Server

RESTARTS = 8
DIES = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); sys.exit(3)"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="exit status by waitid")


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """A file with a line for each process that was started."""
    return tmp_path / "starts.txt"


@pytest.fixture
def jp_server_config(
    jp_server_config: Config, tmp_path: Path, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    argv = [sys.executable, "-S", "-c", DIES, str(starts)]
    write_setting(tmp_path / "more" / "kernels", "dies", argv)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "more"))
    # Jupyter looks every 3 s and gives up after 5 restarts.
    jp_server_config.KernelRestarter.time_to_dead = 1.5
    jp_server_config.KernelRestarter.restart_limit = RESTARTS
    return jp_server_config


async def test_each_failed_start_has_one_report_and_all_are_one_entry(
    server: Server, starts: Path
) -> None:
    answer = await server.fetch("api", "kernels", method="POST", body='{"name": "dies"}')
    kernel_id = json.loads(answer.body)["id"]
    manager = server.app.kernel_manager.get_kernel(kernel_id)
    gone: list[str] = []
    manager.add_restart_callback(lambda: gone.append("dead"), "dead")
    await wait_until_async(lambda: gone, "the server to give up")
    crashes = starts.read_text().count("\n")
    assert crashes == RESTARTS + 1

    await wait_until_async(lambda: len(server.events) == crashes, "an event for each death")
    crashes = (await server.get("crashes"))["crashes"]
    pids = {int(line) for line in starts.read_text().split()}
    assert {entry["pid"] for entry in crashes} == pids
    assert {entry["kernel_id"] for entry in crashes} == {kernel_id}
    assert {entry["kernel_name"] for entry in crashes} == {"dies"}
    assert {entry["same_as"] for entry in crashes[1:]} == {crashes[0]["id"]}
    assert crashes[0]["same_as"] is None
    assert sorted(event["id"] for event in server.events) == sorted(e["id"] for e in crashes)
