"""The server ends, whatever happens to its kernels in that moment."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from jupyter_tfguard.server.kernels import KernelTracker


class _Sessions:
    async def list_sessions(self) -> list[Any]:
        return []


async def test_an_event_in_the_moment_of_the_end_does_not_keep_the_server() -> None:
    app: Any = SimpleNamespace(
        event_logger=None,
        kernel_manager=SimpleNamespace(list_kernel_ids=list),
        session_manager=_Sessions(),
    )
    watcher: Any = None
    tracker = KernelTracker(app, watcher, lambda identity: None, lambda: None)
    tracker.start()
    await asyncio.sleep(0.2)  # it waits for an event
    await tracker._on_kernel_action(None, "", {})
    await asyncio.sleep(0)  # the event was seen, and the one who waits for it not yet woken
    done, _ = await asyncio.wait({asyncio.ensure_future(tracker.stop())}, timeout=10)
    assert done
