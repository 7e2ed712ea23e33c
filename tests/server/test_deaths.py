"""Kernels of a real server that really die, and ends that were asked for."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from tests.rigs.waiting import wait_until_async

from .conftest import Server


async def new_pid(server: Server, kernel_id: str, old: int) -> int | None:
    state = await server.state(kernel_id)
    pid = state["pid"] if state else None
    return pid if pid != old else None


async def test_a_killed_kernel_makes_one_report_one_event_and_one_plain_line(
    server: Server, data_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kernel_id = await server.start_kernel()
    pid = await server.pid(kernel_id)
    os.kill(pid, signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert crash["cause"] == "sigkill_unattributed"
    assert crash["kernel_id"] == kernel_id
    assert crash["pid"] == pid
    assert crash["kernel_alive"] is False
    assert crash["unread"] is True
    # Until the restart the dead process is still there as a zombie, and is not taken for the kernel.
    await asyncio.sleep(1.2)
    state = await server.state(kernel_id)
    assert state is not None
    assert state["pid"] != pid
    # The restarter needs up to 3 s; the restarted kernel is a new process and no second death.
    await wait_until_async(lambda: new_pid(server, kernel_id, pid), "the restarted kernel")
    await asyncio.sleep(1.5)
    assert len((await server.get("crashes"))["crashes"]) == 1
    [event] = server.events
    told = ("id", "cause", "confidence", "kernel_alive")
    assert event == {"kernel_id": kernel_id} | {name: crash[name] for name in told}
    ours = [r for r in caplog.records if r.getMessage().startswith("tfguard: kernel")]
    [line] = ours
    assert line.levelno == logging.WARNING
    assert crash["id"] in line.getMessage()
    assert str(data_folder) not in line.getMessage()
    # The dead kernel's recording is in the report now; the restarted one's is there.
    names = os.listdir(data_folder / "recordings")
    assert not [name for name in names if name.startswith((f"{pid}-", "claimed-"))]


async def test_the_report_tells_the_cell_and_what_the_server_saw(server: Server) -> None:
    kernel_id = await server.start_kernel()
    await server.execute(
        kernel_id, "x = 1\nimport os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    )
    [crash] = await server.crashes(1)
    assert crash["cause"] == "segfault_native"
    report = await server.get("crashes", crash["id"])
    assert any("x = 1" in row["value"] for row in report["activity"])
    assert any("Segmentation fault" in line for line in report["python_stack"])
    assert "server" in {fact["source"] for fact in report["evidence"]}


async def test_an_end_that_was_asked_for_makes_no_report(server: Server, data_folder: Path) -> None:
    kernel_id = await server.start_kernel()
    first = await server.pid(kernel_id)
    await server.fetch("api", "kernels", kernel_id, "interrupt", method="POST", body="")
    await server.fetch("api", "kernels", kernel_id, "restart", method="POST", body="")
    await wait_until_async(lambda: new_pid(server, kernel_id, first), "the restarted kernel")
    await wait_until_async(lambda: server.is_ready(kernel_id), "its guard")
    await server.fetch("api", "kernels", kernel_id, method="DELETE")
    await asyncio.sleep(1.5)
    assert (await server.get("crashes"))["crashes"] == []
    assert server.events == []
    await wait_until_async(lambda: os.listdir(data_folder / "recordings") == [], "an empty folder")


async def test_a_restart_that_has_to_kill_a_deaf_kernel_makes_no_report(
    server: Server, data_folder: Path
) -> None:
    kernel_id = await server.start_kernel()
    pid = await server.pid(kernel_id)
    os.kill(pid, signal.SIGSTOP)  # hears nothing, and is killed after the grace time
    manager = server.app.kernel_manager.get_kernel(kernel_id)
    manager.shutdown_wait_time = 0.5
    await server.fetch(
        "api", "kernels", kernel_id, "restart", method="POST", body="", request_timeout=60
    )
    await wait_until_async(lambda: new_pid(server, kernel_id, pid), "the restarted kernel")
    await asyncio.sleep(1.2)
    assert (await server.get("crashes"))["crashes"] == []
    names = os.listdir(data_folder / "recordings")
    assert not [name for name in names if name.startswith(f"{pid}-")]


async def test_two_deaths_in_a_row_make_two_reports(server: Server) -> None:
    kernel_id = await server.start_kernel()
    first = await server.pid(kernel_id)
    os.kill(first, signal.SIGKILL)
    second = await wait_until_async(
        lambda: new_pid(server, kernel_id, first), "the restarted kernel"
    )
    os.kill(second, signal.SIGTERM)
    crashes = await server.crashes(2)
    assert [crash["pid"] for crash in crashes] == [second, first]
    assert crashes[0]["cause"] == "terminated_by_user_or_manager"


async def test_two_kernels_that_die_at_once_make_two_reports(server: Server) -> None:
    kernels = [await server.start_kernel() for _ in range(2)]
    pids = [await server.pid(kernel_id) for kernel_id in kernels]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    crashes = await server.crashes(2)
    assert {crash["kernel_id"] for crash in crashes} == set(kernels)
    await wait_until_async(lambda: len(server.events) == 2)


async def test_the_notebook_s_path_comes_from_the_session(server: Server) -> None:
    body = {
        "path": "dir/train.ipynb",
        "type": "notebook",
        "name": "",
        "kernel": {"name": "python3"},
    }
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    kernel_id = json.loads(answer.body)["kernel"]["id"]
    await wait_until_async(lambda: server.is_ready(kernel_id), "a watched kernel")

    async def path() -> Any:
        state = await server.state(kernel_id)
        return state and state["notebook_path"] == "dir/train.ipynb"

    await wait_until_async(path, "the path")
    os.kill(await server.pid(kernel_id), signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert crash["notebook_path"] == "dir/train.ipynb"


async def test_a_kernel_that_dies_while_it_starts_is_reported(server: Server) -> None:
    kernel_id = await server.start_kernel(wait=False)
    provisioner = server.app.kernel_manager.get_kernel(kernel_id).provisioner
    os.kill(provisioner.pid, signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert (crash["kernel_id"], crash["cause"]) == (kernel_id, "sigkill_unattributed")


class TestAfterAServerThatDied:
    @pytest.fixture
    def jp_server_config(self, jp_server_config: Any, data_folder: Path) -> Any:
        """A recording without an end, of a process that has since gone."""
        process = subprocess.Popen(["sleep", "60"])
        identity = ProcessIdentity.of(process.pid)
        assert identity is not None
        header = {"kernel_id": "k-old", "parent_pid": os.getpid(), "watcher_pid": None}
        recording = Recording(data_folder / "recordings", identity, header, [])
        recording.event("cell_start", execution_count=3, cell_id="a", head="train()")
        recording.close()
        process.kill()
        process.wait()
        return jp_server_config

    async def test_its_dead_kernels_are_reported_at_the_next_start(
        self, server: Server, data_folder: Path
    ) -> None:
        [crash] = await server.crashes(1)
        assert crash["kernel_id"] == "k-old"
        assert crash["confidence"] != "certain"
        await wait_until_async(
            lambda: not os.listdir(data_folder / "recordings"), "the folder to be swept"
        )
