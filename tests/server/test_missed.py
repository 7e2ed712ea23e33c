"""Deaths and looks for orphans beside each other: none is missed, and none is told twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.waiting import wait_until_async

from .conftest import Server


async def test_a_restarted_kernel_that_nobody_saw_is_reported_once_its_restarter_finds_it(
    server: Server, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_id = await server.start_kernel()
    first = await server.pid(kernel_id)
    manager = server.app.kernel_manager.get_kernel(kernel_id)
    tracker = server.app.web_app.settings["tfguard_service"]._tracker
    os.kill(first, signal.SIGKILL)
    await server.crashes(1)
    with monkeypatch.context() as patch:
        patch.setattr(tracker, "_follow", lambda tracked: None)  # the loop has no turn for it

        def second() -> int | None:
            pid = manager.provisioner.pid
            is_recorded = any((data_folder / "recordings").glob(f"{pid}-*/header.json"))
            return pid if pid != first and is_recorded else None

        pid = await wait_until_async(second, "the restarted kernel's recording")
        os.kill(pid, signal.SIGKILL)
        crashes = await server.crashes(2)
    assert {crash["pid"] for crash in crashes} == {first, pid}
    assert {crash["kernel_id"] for crash in crashes} == {kernel_id}
    assert {crash["pid"]: crash["cause"] for crash in crashes}[
        pid
    ] == "unknown"  # its exit status is gone
    assert len(crashes) == 2


async def test_kernels_that_die_while_orphans_are_searched_for_are_reported_once_by_who_saw_it(
    server: Server, data_folder: Path
) -> None:
    pids = [await server.pid(await server.start_kernel()) for _ in range(3)]
    postmortem = server.app.web_app.settings["tfguard_service"]._postmortem
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # While the loop has no turn, the recordings are those of dead kernels, and nobody has told of them.
    postmortem.handle_unwatched()
    for _ in range(20):
        await asyncio.to_thread(postmortem.handle_unwatched)
        await asyncio.sleep(0.02)
    crashes = await server.crashes(3)
    await asyncio.to_thread(postmortem.handle_unwatched)
    await asyncio.sleep(1.0)
    assert sorted(c["pid"] for c in await server.crashes(3)) == sorted(pids)
    assert {c["cause"] for c in crashes} == {"sigkill_unattributed"}  # seen: "unknown" without


async def test_an_end_that_was_asked_for_is_no_orphan(
    server: Server, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_id = await server.start_kernel()
    service = server.app.web_app.settings["tfguard_service"]
    pid = await server.pid(kernel_id)
    os.kill(pid, signal.SIGSTOP)  # it hears of no shutdown, and is killed without a mark of its end
    forget = service._postmortem.forget

    def forget_slowly(*ended: Any) -> None:
        time.sleep(2)  # a slow disk
        forget(*ended)

    monkeypatch.setattr(service._postmortem, "forget", forget_slowly)
    manager = server.app.kernel_manager.get_kernel(kernel_id)
    manager.shutdown_wait_time = 1.0
    await server.fetch("api", "kernels", kernel_id, method="DELETE")
    for _ in range(10):
        await asyncio.to_thread(service._postmortem.handle_unwatched)
        await asyncio.sleep(0.1)
    assert (await server.get("crashes"))["crashes"] == []

    def is_gone() -> bool:
        return not any(str(pid) in name for name in os.listdir(data_folder / "recordings"))

    await wait_until_async(is_gone, "its recording to go")
    assert (await server.get("crashes"))["crashes"] == []
