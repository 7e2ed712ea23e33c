"""Which notebook a kernel belongs to, while notebooks are renamed and the server's sessions are slow to be told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.rigs.waiting import wait_until_async

from .conftest import Server


async def start_in(server: Server, path: str) -> str:
    """A kernel for a notebook that is there; its id, once its path is known."""
    file = Path(server.app.root_dir, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(), file)
    body = {"path": path, "type": "notebook", "name": "", "kernel": {"name": "python3"}}
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    kernel_id: str = json.loads(answer.body)["kernel"]["id"]
    await server.wait_ready(kernel_id)
    await wait_until_async(lambda: has_path(server, kernel_id, path), "the path")
    return kernel_id


async def has_path(server: Server, kernel_id: str, path: str) -> bool:
    state = await server.state(kernel_id)
    return state is not None and state["notebook_path"] == path


@pytest.mark.parametrize(
    ("renamed", "to", "told"),
    [
        ("runs/Untitled.ipynb", "runs/train.ipynb", "runs/train.ipynb"),
        ("runs", "june", "june/Untitled.ipynb"),
        ("runs/other.ipynb", "runs/third.ipynb", "runs/Untitled.ipynb"),
    ],
)
async def test_a_death_a_moment_after_a_rename_is_told_under_the_new_name(
    server: Server, renamed: str, to: str, told: str
) -> None:
    kernel_id = await start_in(server, "runs/Untitled.ipynb")
    Path(server.app.root_dir, "runs/other.ipynb").write_text("{}")
    pid = await server.pid(kernel_id)
    body = json.dumps({"path": to})
    await server.fetch("api", "contents", renamed, method="PATCH", body=body)
    os.kill(pid, signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert crash["notebook_path"] == told


async def test_sessions_that_never_answer_do_not_keep_kernels_from_being_watched(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def never() -> Any:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(server.app.session_manager, "list_sessions", never)
    await server.start_kernel()
    await asyncio.wait_for(asked.wait(), 20)
    kernel_id = await server.start_kernel()
    os.kill(await server.pid(kernel_id), signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert (crash["kernel_id"], crash["notebook_path"]) == (kernel_id, None)
