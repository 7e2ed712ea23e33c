"""A kernel that the server culls because nobody uses it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from traitlets.config import Config

from tests.rigs.waiting import wait_until_async

from .conftest import Server


@pytest.fixture
def jp_server_config(jp_server_config: Config) -> Config:
    return jp_server_config | {
        "MappingKernelManager": {"cull_idle_timeout": 4, "cull_interval": 1, "cull_connected": True}
    }


async def test_a_culled_kernel_makes_no_report_and_leaves_no_recording(
    server: Server, data_folder: Path
) -> None:
    kernel_id = await server.start_kernel()
    await server.execute(kernel_id, "x = 1")
    manager = server.app.kernel_manager
    await wait_until_async(lambda: kernel_id not in manager.list_kernel_ids(), "the culling")
    await wait_until_async(lambda: os.listdir(data_folder / "recordings") == [], "the sweeping")
    await asyncio.sleep(1.5)
    assert (await server.get("crashes"))["crashes"] == []
    assert server.events == []
