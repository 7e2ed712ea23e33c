"""A real Jupyter server with the extension and real kernels, in private folders."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.ioloop.restarter import AsyncIOLoopKernelRestarter
from tornado.httpclient import HTTPClientError, HTTPResponse
from traitlets.config import Config

from tests.rigs.waiting import DEADLINE_SECONDS, wait_until_async

EVENT = "https://schema.jupyter-tfguard.org/kernel_crash/v1"


@pytest.fixture
def jp_server_config(tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    for name in ("TF_FORCE_GPU_ALLOW_GROWTH", "TFGUARD_SET_GROWTH", "TFGUARD_WATCHER_PID"):
        # Set first, so that what the extension sets is undone after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.delenv("TFGUARD_DISABLE", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return Config({"ServerApp": {"jpserver_extensions": {"jupyter_tfguard": True}}})


async def refused(response: Any) -> HTTPResponse:
    """The answer of a request that is refused."""
    with pytest.raises(HTTPClientError) as caught:
        await response
    assert caught.value.response is not None
    return caught.value.response


class Server:
    """What the tests do with a server, over its own routes."""

    samples = Path(__file__).parents[1] / "wire"

    def __init__(self, app: Any, fetch: Any) -> None:
        self.app = app
        self.fetch = fetch
        self.events: list[dict[str, Any]] = []
        self._polls: list[AsyncIOLoopKernelRestarter] = []

    async def listen(self) -> None:
        async def take(logger: Any, schema_id: str, data: dict[str, Any]) -> None:
            self.events.append(data)

        await wait_until_async(lambda: EVENT in self.app.event_logger.schemas, "the event's schema")
        self.app.event_logger.add_listener(schema_id=EVENT, listener=take)

    async def get(self, *path: str, **kwargs: Any) -> Any:
        answer = await self.fetch("tfguard", "api", *path, **kwargs)
        return json.loads(answer.body)

    async def start_kernel(self, wait: bool = True) -> str:
        answer = await self.fetch("api", "kernels", method="POST", body="{}")
        kernel_id: str = json.loads(answer.body)["id"]
        if wait:
            await self.wait_ready(kernel_id)
        return kernel_id

    async def wait_ready(self, kernel_id: str) -> None:
        """Wait until the kernel is watched and its guard is loaded."""
        await wait_until_async(lambda: self.is_ready(kernel_id), "a watched kernel")

    async def state(self, kernel_id: str) -> dict[str, Any] | None:
        status = await self.get("status")
        return next((k for k in status["kernels"] if k["kernel_id"] == kernel_id), None)

    async def is_ready(self, kernel_id: str) -> dict[str, Any] | None:
        """The kernel's state once it is watched and its guard is loaded."""
        state = await self.state(kernel_id)
        return state if state and state["watched"] and state["guard"]["loaded"] else None

    async def pid(self, kernel_id: str) -> int:
        state = await self.state(kernel_id)
        assert state is not None
        assert state["pid"] is not None
        return int(state["pid"])

    async def execute(self, kernel_id: str, code: str, wait: bool = True) -> None:
        """Run a cell; with `wait`, until the kernel is idle again or dead."""
        manager = self.app.kernel_manager.get_kernel(kernel_id)
        process = manager.provisioner.process
        client = manager.client()

        async def ended() -> bool:
            with contextlib.suppress(queue.Empty):
                return bool(await client.get_shell_msg(timeout=0.05))
            return process.poll() is not None

        client.start_channels()
        try:
            await client.wait_for_ready(timeout=DEADLINE_SECONDS)
            client.execute(code)
            if wait:
                await wait_until_async(ended, "the end of the cell or of its kernel")
            else:
                await wait_until_async(lambda: manager.execution_state == "busy", "a busy kernel")
        finally:
            client.stop_channels()

    async def crashes(self, count: int) -> list[dict[str, Any]]:
        async def enough() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = (await self.get("crashes"))["crashes"]
            return found if len(found) >= count else None

        return await wait_until_async(enough, f"{count} reports")

    async def settle(self) -> None:
        """Have no kernel restarted from here on, nor in this moment: jupyter_client cannot end one that is."""
        manager = self.app.kernel_manager
        for kernel_id in manager.list_kernel_ids():
            manager.get_kernel(kernel_id).stop_restarter()
        await wait_until_async(lambda: not self._polls, "a kernel that is being restarted")

    def follow_restarts(self, patch: pytest.MonkeyPatch) -> None:
        """Know which restarters poll their kernel; a restart is a part of it."""
        poll = AsyncIOLoopKernelRestarter.poll

        async def followed(restarter: AsyncIOLoopKernelRestarter) -> None:
            self._polls.append(restarter)
            try:
                await poll(restarter)
            finally:
                self._polls.remove(restarter)

        patch.setattr(AsyncIOLoopKernelRestarter, "poll", followed)


@pytest.fixture
def server(
    jp_serverapp: Any, jp_fetch: Any, jp_asyncio_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    found = Server(jp_serverapp, jp_fetch)
    found.follow_restarts(monkeypatch)
    jp_asyncio_loop.run_until_complete(found.listen())
    yield found
    jp_asyncio_loop.run_until_complete(found.settle())
