"""A server that ends: nothing of it is left pending, and its kernels make no report."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.server.kernels import KernelTracker
from tests.rigs.waiting import wait_until_async

from .conftest import Server


class _Sessions:
    async def list_sessions(self) -> list[Any]:
        return []


async def test_the_tracker_leaves_nothing_pending_on_the_loop() -> None:
    looks = 0

    def list_kernel_ids() -> list[str]:
        nonlocal looks
        looks += 1
        return []

    app: Any = SimpleNamespace(
        event_logger=None,
        kernel_manager=SimpleNamespace(list_kernel_ids=list_kernel_ids),
        session_manager=_Sessions(),
    )
    watcher: Any = None
    tracker = KernelTracker(app, watcher, lambda identity: None, lambda: None)
    tracker.start()
    await wait_until_async(lambda: looks, "the first look")
    assert "_reconcile_forever" not in str(asyncio.all_tasks())
    await tracker._on_kernel_action(None, "", {})
    await wait_until_async(lambda: looks == 2, "a look for the event")
    await tracker.stop()
    await tracker._on_kernel_action(None, "", {})  # one that was on its way
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_busy_kernels_of_a_server_that_stops_make_no_report(
    server: Server, data_folder: Path
) -> None:
    kernel_id = await server.start_kernel()
    pid = await server.pid(kernel_id)
    await server.execute(kernel_id, "import time; time.sleep(600)", wait=False)
    await server.settle()
    await server.app.extension_manager.stop_all_extensions()
    os.kill(pid, signal.SIGKILL)  # what a manager does in the end
    recordings = data_folder / "recordings"
    postmortem = Postmortem(recordings, BundleStore(data_folder / "bundles"), TfGuard())

    def swept() -> bool:
        assert postmortem.handle_unwatched() == []
        return not list(recordings.iterdir())

    await wait_until_async(swept, "the recording swept away")
