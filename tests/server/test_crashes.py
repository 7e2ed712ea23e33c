"""Kernels of a real server that really die, and ends that were asked for."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.record.recording import Recording
from jupyter_tfguard.report.announce import announcement
from tests.rigs.schemas import matches
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
    # The restarted kernel is a new process and no second crash.
    await wait_until_async(lambda: new_pid(server, kernel_id, pid), "the restarted kernel")
    await wait_until_async(lambda: server.is_ready(kernel_id), "its guard")
    crashes = matches("crashes", await server.get("crashes"))["crashes"]
    assert len(crashes) == 1
    report = matches("report", await server.get("crashes", crash["id"]))
    assert report["cause"] == crash["cause"]
    await wait_until_async(lambda: server.events, "the event")
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


@pytest.mark.parametrize("is_page_open", [True, False])
async def test_the_next_kernel_prints_only_what_no_page_has_shown(
    server: Server, jp_ws_fetch: Any, is_page_open: bool
) -> None:
    page = await jp_ws_fetch("tfguard", "api", "stream") if is_page_open else None
    kernel_id = await server.start_kernel()
    os.kill(await server.pid(kernel_id), signal.SIGKILL)
    await wait_until_async(lambda: server.events, "the event")
    lines = announcement(BundleStore(bundles_folder()), kernel_id, None)
    assert len(lines) == (0 if is_page_open else 2)
    if page is not None:
        page.close()
        while await page.read_message() is not None:
            pass


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
    recordings = data_folder / "recordings"
    await wait_until_async(lambda: not list(recordings.glob(f"{pid}-*")), "its recording to go")
    assert (await server.get("crashes"))["crashes"] == []


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
