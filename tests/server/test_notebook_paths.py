"""Which notebook a kernel belongs to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import pytest

from tests.rigs.waiting import wait_until_async

from .conftest import Server


async def test_the_path_is_that_of_the_session_also_when_it_changes(server: Server) -> None:
    body = {"path": "a.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}}
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    session = json.loads(answer.body)
    kernel_id: str = session["kernel"]["id"]

    async def has_path(path: str) -> bool:
        state = await server.state(kernel_id)
        return state is not None and state["notebook_path"] == path

    await wait_until_async(lambda: has_path("a.ipynb"), "the path")
    renamed = json.dumps({"path": "b/c.ipynb"})
    await server.fetch("api", "sessions", session["id"], method="PATCH", body=renamed)
    await wait_until_async(lambda: has_path("b/c.ipynb"), "the new path")


@pytest.mark.parametrize(("old", "new"), [("a/n.ipynb", "a/m.ipynb"), ("a", "b")])
async def test_a_crash_right_after_a_rename_names_the_new_notebook(
    server: Server, old: str, new: str
) -> None:
    await server.fetch("api", "contents", "a", method="PUT", body='{"type": "directory"}')
    empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    written = json.dumps({"type": "notebook", "content": empty})
    await server.fetch("api", "contents", "a", "n.ipynb", method="PUT", body=written)
    body = {"path": "a/n.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}}
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    kernel_id: str = json.loads(answer.body)["kernel"]["id"]

    async def has_path(path: str) -> bool:
        state = await server.state(kernel_id)
        return state is not None and state["notebook_path"] == path

    await wait_until_async(lambda: has_path("a/n.ipynb"), "the path")
    pid = await server.pid(kernel_id)
    renamed = json.dumps({"path": new})
    await server.fetch("api", "contents", *old.split("/"), method="PATCH", body=renamed)
    os.kill(pid, signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert crash["notebook_path"] == ("a/m.ipynb" if old.endswith("ipynb") else "b/n.ipynb")


async def test_a_kernel_that_dies_before_the_sessions_are_read_has_its_notebook_too(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(server.app.session_manager, "list_sessions", never)
    body = {"path": "a.ipynb", "type": "notebook", "name": "a.ipynb", "kernel": {"name": "python3"}}
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    kernel_id: str = json.loads(answer.body)["kernel"]["id"]
    os.kill(server.app.kernel_manager.get_kernel(kernel_id).provisioner.pid, signal.SIGKILL)
    [crash] = await server.crashes(1)
    assert (crash["kernel_id"], crash["notebook_path"]) == (kernel_id, "a.ipynb")


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
