"""What tests of ``%tfguard panel`` hear of a real kernel, and say to it."""

from __future__ import annotations

import contextlib
import queue
import time
from typing import Any

from tests.kernel.rig import GuardedKernel


def messages(kernel: GuardedKernel, seconds: float) -> list[dict[str, Any]]:
    """What the kernel publishes in so many seconds."""
    found, end = [], time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(queue.Empty):
            found.append(kernel.client.get_iopub_msg(timeout=left))
    return found


def until_idle(kernel: GuardedKernel, request: str) -> list[dict[str, Any]]:
    """What the kernel publishes until this cell has ended."""
    found, end = [], time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(queue.Empty):
            found.append(kernel.client.get_iopub_msg(timeout=1))
            last = found[-1]
            if last["parent_header"].get("msg_id") == request and last["content"] == {
                "execution_state": "idle"
            }:
                return found
    raise AssertionError("the cell does not end")


def panel_data(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What panels sent, among it."""
    said = [m["content"]["data"] for m in found if m["msg_type"] == "comm_msg"]
    return [data["content"] for data in said if data.get("method") == "custom"]


def news(found: list[dict[str, Any]], kind: str = "state") -> list[dict[str, Any]]:
    """Messages of one type that panels sent, among it."""
    return [content for content in panel_data(found) if content["type"] == kind]


def opened(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The comm of the panel among them."""
    comms = [m["content"] for m in found if m["msg_type"] == "comm_open"]
    return next(one for one in comms if "history" in one["data"]["state"])


def tell(kernel: GuardedKernel, comm_id: str, content: dict[str, Any]) -> None:
    """What a view would send."""
    data = {"method": "custom", "content": content}
    kernel.client.shell_channel.send(
        kernel.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
    )
