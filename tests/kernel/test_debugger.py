"""The guard's threads in Jupyter's debugger."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any

from tests.kernel.rig import GuardedKernel

Make = Callable[..., GuardedKernel]
_ANSWER_SECONDS = 60.0


def test_threads_of_the_guard_are_not_listed(new_kernel: Make) -> None:
    kernel = new_kernel()
    ran = kernel.run("import threading; print(*(t.name for t in threading.enumerate()))")
    assert "tfguard-pulse" in ran.stdout
    arguments = {"clientID": "test", "adapterID": "", "pathFormat": "path"}
    assert ask(kernel, 1, "initialize", arguments)["success"]
    assert ask(kernel, 2, "attach", {})["success"]
    listed = [thread["name"] for thread in ask(kernel, 3, "threads", {})["body"]["threads"]]
    assert "MainThread" in listed
    assert [name for name in listed if name.startswith("tfguard")] == []


def ask(kernel: GuardedKernel, number: int, command: str, arguments: dict[str, Any]) -> Any:
    """Send a request of the debug adapter protocol; the content of its answer."""
    content = {"type": "request", "seq": number, "command": command, "arguments": arguments}
    message = kernel.client.session.msg("debug_request", content)
    kernel.client.control_channel.send(message)
    end = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < end:
        try:
            answer = kernel.client.get_control_msg(timeout=1.0)
        except queue.Empty:
            continue
        if answer["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return answer["content"]
    raise AssertionError(f"no answer to {command} within {_ANSWER_SECONDS} s")
