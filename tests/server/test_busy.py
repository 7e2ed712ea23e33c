"""A cell runs as long as the kernel itself says so, even if its server received another state."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.rigs.waiting import wait_until_async

from .conftest import Server


async def test_the_idle_of_a_subshell_is_not_believed_while_a_cell_runs(
    server: Server, tmp_path: Path
) -> None:
    kernel_id = await server.start_kernel()
    manager = server.app.kernel_manager.get_kernel(kernel_id)
    tracker = server.app.web_app.settings["tfguard_service"]._tracker
    monitored = tracker.view(kernel_id).monitored
    may_end = tmp_path / "may-end"
    waits = f"import os, time\nwhile not os.path.exists({str(may_end)!r}): time.sleep(0.05)"
    await server.execute(kernel_id, waits, wait=False)
    await wait_until_async(lambda: monitored.live.runs_cell, "the cell in the recording")
    await wait_until_async(lambda: monitored.is_busy, "the sampler to know of the cell")
    # What the server does at a status message: ipykernel sends this one after each message that a subshell handled.
    manager.execution_state = "idle"
    for _ in range(10):
        assert monitored.is_busy
        await asyncio.sleep(0.4)
    # The next message for the subshell: still the run that began with the cell.
    began = tracker.view(kernel_id).run_since
    manager.execution_state = "busy"
    assert began is not None
    assert tracker.view(kernel_id).run_since == began
    manager.execution_state = "idle"
    may_end.touch()
    await wait_until_async(lambda: not monitored.is_busy, "the end of the cell")
