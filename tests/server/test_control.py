"""A page reaches the guard in a kernel while a cell runs, and nobody takes that for work."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.server.control import NotHere, ask_guard, keep_out_of_activity, request_of
from tests.rigs.waiting import wait_until_async

from .conftest import Server, refused


async def ask(server: Server, kernel_id: str, **request: Any) -> Any:
    answer = await server.fetch(
        "tfguard",
        "api",
        "kernels",
        kernel_id,
        "control",
        method="POST",
        body=json.dumps(request),
    )
    return json.loads(answer.body)


async def test_a_busy_kernel_answers_and_stays_busy_for_the_server(server: Server) -> None:
    kernel_id = await server.start_kernel()
    client = server.app.kernel_manager.get_kernel(kernel_id).client()
    client.start_channels()
    client.execute("import time; time.sleep(8)")

    async def is_busy() -> bool:
        answer = await ask(server, kernel_id, request="state")
        return bool(answer["state"]["busy"])

    await wait_until_async(is_busy, "a running cell")
    answer = await ask(server, kernel_id, request="rate", hertz=2)
    assert answer == {"status": "ok", "hertz": 2.0}
    assert (await ask(server, kernel_id, request="state"))["state"]["hertz"] == 2.0
    # ipykernel has said "idle" on the channel that the server listens to.
    await asyncio.sleep(0.3)
    assert server.app.kernel_manager.get_kernel(kernel_id).execution_state == "busy"
    client.stop_channels()


async def test_other_requests_are_not_passed_on(server: Server) -> None:
    kernel_id = await server.start_kernel()
    for bad in (
        {},
        {"request": "shutdown"},
        {"request": "rate"},
        {"request": "rate", "hertz": "4"},
        {"request": "here", "panel": "p"},
        {"request": "here", "panel": "p", "view": "v" * 41},
    ):
        response = await refused(ask(server, kernel_id, **bad))
        assert response.code == 400, bad
        assert "three requests" in json.loads(response.body)["message"]
    response = await refused(ask(server, "no-such-kernel", request="state"))
    assert response.code == 404


async def test_a_kernel_without_the_guard_is_said_to_be_silent(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_guard, "__defaults__", (0.5,))
    monkeypatch.setenv("TFGUARD_DISABLE", "1")
    kernel_id = await server.start_kernel(wait=False)
    response = await refused(ask(server, kernel_id, request="state"))
    assert response.code == 409
    assert "gave no answer" in json.loads(response.body)["message"]


async def test_a_remote_kernel_cannot_be_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotHere, match="runs elsewhere"):
        await ask_guard(object(), {"request": "state"})
    kernel_id = await server.start_kernel()
    kernels = type(server.app.kernel_manager)
    monkeypatch.setattr(kernels, "get_kernel", lambda *_: object())
    response = await refused(ask(server, kernel_id, request="state"))
    assert response.code == 404  # then a page asks in its own way
    assert "runs elsewhere" in json.loads(response.body)["message"]
    monkeypatch.undo()


@pytest.mark.parametrize("hertz", [float("nan"), float("inf"), 10**400, True, None, "4", [4]])
def test_a_rate_that_is_no_number_is_no_request(hertz: object) -> None:
    assert request_of({"request": "rate", "hertz": hertz}) is None


def test_our_requests_are_kept_out_of_the_activity_once() -> None:
    kernels = SimpleNamespace(untracked_message_types=["status"])
    keep_out_of_activity(kernels)
    keep_out_of_activity(kernels)
    assert kernels.untracked_message_types == ["status", "tfguard_request", "tfguard_reply"]
    keep_out_of_activity(SimpleNamespace())
