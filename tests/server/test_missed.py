"""A kernel that dies before the server had a turn to watch it is told of all the same, and soon."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .conftest import Server, until


async def test_a_restarted_kernel_that_nobody_saw_is_told_once_its_restarter_finds_it(
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
            folders = os.listdir(data_folder / "recordings")
            return pid if pid != first and any(n.startswith(f"{pid}-") for n in folders) else None

        pid = await until(second, 60, "the restarted kernel's recording")
        os.kill(pid, signal.SIGKILL)
        crashes = await server.crashes(2, 30)
    assert {crash["pid"] for crash in crashes} == {first, pid}
    assert {crash["kernel_id"] for crash in crashes} == {kernel_id}
    assert {crash["pid"]: crash["cause"] for crash in crashes}[
        pid
    ] == "unknown"  # its exit status is gone
    assert len(crashes) == 2
