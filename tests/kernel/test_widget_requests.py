"""What ``%tfguard panel`` is asked by its page, over each of its ways, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.rig import GuardedKernel
from tests.kernel.widget_rig import ask, messages, news, opened, panel_data, tell, until_idle

pytestmark = pytest.mark.usefixtures("reloaded")


def test_the_control_channel_answers_while_a_cell_runs(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    panel("pass")
    request = kernel.send("import time; time.sleep(4)")
    time.sleep(0.5)
    assert ask(kernel, request="state")["state"]["busy"] is True
    assert ask(kernel, request="rate", hertz=0) == {"status": "ok", "hertz": 0.0}
    paused = messages(kernel, 1.2)
    kinds = [content["type"] for content in panel_data(paused)]
    assert kinds.count("rate") == 1
    assert len(kinds[kinds.index("rate") :]) <= 2  # one may have been on its way
    # ipykernel says "idle" after a control request, and a page would believe it.
    states = [m["content"]["execution_state"] for m in paused if m["msg_type"] == "status"]
    assert states[-1] == "busy"
    assert ask(kernel, request="rate", hertz=1000)["hertz"] == 10.0
    assert len(news(until_idle(kernel, request))) >= 3


def test_a_here_that_names_no_panel_of_this_kernel_is_refused(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    panel("pass")
    for names in ({"panel": "another", "view": "a"}, {"panel": 1, "view": "a"}, {}):
        answer = ask(kernel, request="here", **names)
        assert (answer["status"], "no such panel" in answer["message"]) == ("error", True)


def test_a_request_that_it_does_not_know_is_refused_in_a_sentence(kernel: GuardedKernel) -> None:
    for bad in (
        {"request": "exit"},
        {},
        {"request": "rate", "hertz": "fast"},
        {"request": "rate", "hertz": True},
        {"request": "rate", "hertz": 10**400},
    ):
        answer = ask(kernel, **bad)
        assert answer["status"] == "error", bad
        assert answer["message"].endswith(".")


def test_its_own_message_and_a_comm_are_answered_too(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    comm_id = opened(panel("pass"))["comm_id"]
    tell(kernel, comm_id, {"type": "control", "request": "rate", "hertz": 2})
    assert [one["hertz"] for one in news(messages(kernel, 1.0), "answer")] == [2.0]
    session, shell = kernel.client.session, kernel.client.shell_channel
    target = {"comm_id": "ours", "target_name": "jupyter_tfguard.control", "data": {}}
    shell.send(session.msg("comm_open", target))
    asked = {"comm_id": "ours", "data": {"request": "rate", "hertz": 3}}
    shell.send(session.msg("comm_msg", asked))
    found = [m for m in messages(kernel, 1.0) if m["msg_type"] == "comm_msg"]
    answers = [m["content"]["data"] for m in found if m["content"]["comm_id"] == "ours"]
    assert answers == [{"status": "ok", "hertz": 3.0}]


def test_a_subshell_that_is_taken_away_late_leaves_the_kernel_busy(
    kernel: GuardedKernel, panel: Callable[..., Any]
) -> None:
    panel("pass")
    session, client = kernel.client.session, kernel.client
    client.control_channel.send(session.msg("create_subshell_request", {}))
    subshell = client.get_control_msg(timeout=20)["content"]["subshell_id"]
    request = kernel.send("import time; time.sleep(12)")
    target = {"comm_id": "late", "target_name": "jupyter_tfguard.control", "data": {}}
    asked = {"comm_id": "late", "data": {"request": "state"}}
    for kind, content in (
        ("comm_open", target),
        ("comm_msg", asked),
        ("comm_close", {"comm_id": "late", "data": {}}),
    ):
        message = session.msg(kind, content)
        message["header"]["subshell_id"] = subshell
        client.shell_channel.send(message)
    found = messages(kernel, 7.0)  # the page is busy with something else
    assert any(m["msg_type"] == "comm_msg" and m["content"]["comm_id"] == "late" for m in found)
    client.control_channel.send(session.msg("delete_subshell_request", {"subshell_id": subshell}))
    found = messages(kernel, 2.5)
    states = [m["content"]["execution_state"] for m in found if m["msg_type"] == "status"]
    assert ("idle" in states, states[-1]) == (True, "busy")
    until_idle(kernel, request)
    states = [
        m["content"]["execution_state"] for m in messages(kernel, 2.5) if m["msg_type"] == "status"
    ]
    assert "busy" not in states
