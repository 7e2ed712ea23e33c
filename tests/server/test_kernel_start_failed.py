"""A kernel that dies before it is up, again and again: the server restarts it until it gives up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

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
    spec = tmp_path / "more" / "kernels" / "dies"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-S", "-c", DIES, str(starts)]
    kernel = {"argv": argv, "display_name": "Dies", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(kernel))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "more"))
    # Jupyter looks every 3 s and gives up after 5 restarts.
    jp_server_config.KernelRestarter.time_to_dead = 1.5
    jp_server_config.KernelRestarter.restart_limit = RESTARTS
    return jp_server_config


async def test_each_failed_start_is_told_and_counted_once(
    server: Server, starts: Path, data_folder: Path
) -> None:
    answer = await server.fetch("api", "kernels", method="POST", body='{"name": "dies"}')
    kernel_id = json.loads(answer.body)["id"]
    manager = server.app.kernel_manager.get_kernel(kernel_id)
    gone: list[str] = []
    manager.add_restart_callback(lambda: gone.append("dead"), "dead")
    await wait_until_async(lambda: gone, "the server to give up")
    deaths = starts.read_text().count("\n")
    assert deaths == RESTARTS + 1

    await wait_until_async(lambda: len(server.events) == deaths, "an event for each death")
    crashes = (await server.get("crashes"))["crashes"]
    counted = [entry for entry in crashes if entry["group"]]
    single = [entry for entry in crashes if not entry["group"]]
    assert len(single) == 5
    assert [entry["group"]["deaths_count"] for entry in counted] == [deaths - 5]
    assert {entry["kernel_id"] for entry in crashes} == {kernel_id}
    assert {entry["kernel_name"] for entry in crashes} == {"dies"}
    assert {cause["cause"] for cause in counted[0]["group"]["causes"]} == {single[0]["cause"]}
    pids = {int(line) for line in starts.read_text().split()}
    assert {entry["pid"] for entry in single} <= pids
    told = [event.get("deaths_count") for event in server.events]
    assert told == [None] * 5 + list(range(1, deaths - 4))
    assert {event["id"] for event in server.events[5:]} == {counted[0]["id"]}
    listed: list[Any] = list((data_folder / "bundles").iterdir())
    assert len([path for path in listed if not path.name.startswith(".")]) == 6
