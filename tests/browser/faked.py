"""A page whose server sends a kernel and crashes from the samples of the wire format."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, WebSocketRoute

WIRE = Path(__file__).parents[1] / "wire"


def sample(name: str) -> Any:
    return json.loads((WIRE / f"{name}.json").read_text(encoding="utf-8"))


def near_limit(kernel_id: str) -> tuple[Any, Any]:
    """History and tick of a kernel in a fit, with GPUs, near its memory limit."""
    tick, history = sample("tick"), sample("history")
    now = time.time()
    kernel = tick["kernel"]
    tick["gpus"] = sample("status")["gpus"]
    kernel["kernel_id"] = history["kernel_id"] = kernel_id
    limit = kernel["host"]["limit"]
    kernel["host"]["rss_bytes"] = kernel["host"]["used_bytes"] = int(0.96 * limit["bytes"])
    kernel["host"]["time"] = tick["time"] = now
    shift = now - history["rows"][-1][0] - 0.5
    history["rows"] = [[when + shift, *rest] for when, *rest in history["rows"]]
    for mark in history["marks"]:
        mark["time"] += shift
    return history, tick


def fake(page: Page, notebook_path: str, cell_id: str) -> None:
    """From now on, the panel's routes answer with samples; the newest death is of this notebook's cell."""
    crashes, report = sample("crashes"), sample("report")
    for known in (crashes["crashes"][0], report):
        known["notebook_path"] = notebook_path
        known["cell"] = {"cell_id": cell_id, "execution_count": 1}

    def answer(route: Route) -> None:
        path = route.request.url.split("?")[0]
        if path.endswith("/crashes"):
            route.fulfill(json=crashes)
        elif path.endswith("/read"):
            route.fulfill(status=204)
        else:
            route.fulfill(json=report)

    def stream(socket: WebSocketRoute) -> None:
        def on_message(message: str | bytes) -> None:
            kernel_id = json.loads(message).get("kernel_id")
            if kernel_id is not None:
                history, tick = near_limit(kernel_id)
                tick["kernel"]["memory_stop"] = sample("status")["kernels"][0]["memory_stop"]
                for told in ({"type": "history"} | history, {"type": "tick"} | tick):
                    socket.send(json.dumps(told))

        socket.on_message(on_message)

    page.route(re.compile(r"/tfguard/api/crashes"), answer)
    page.route(
        re.compile(r"/tfguard/api/options"), lambda route: route.fulfill(json=sample("options"))
    )
    page.route_web_socket(re.compile(r"/tfguard/api/stream"), stream)


class FakedStream:
    """The stream of a page, sent by the test: as much history as wanted, at the speed of the test."""

    # Between two samples, as it really is: ten minutes are no multiple of it.
    STEP_SECONDS = 1.0137

    def __init__(self, page: Page) -> None:
        self._kernel_id = ""
        self._page = page
        self._socket: WebSocketRoute | None = None
        self._time = time.time()
        page.route_web_socket(re.compile(r"/tfguard/api/stream"), self._open)

    def _open(self, socket: WebSocketRoute) -> None:
        socket.on_message(self._watch)
        self._socket = socket

    def _watch(self, message: str | bytes) -> None:
        self._kernel_id = json.loads(message).get("kernel_id") or self._kernel_id

    def is_watched(self) -> bool:
        """Whether the page has asked for a kernel."""
        self._page.wait_for_timeout(20)  # Playwright hands on messages only while it waits
        return self._kernel_id != ""

    def send_history(self, seconds: float) -> None:
        """What the server remembers of a kernel that has been running for so long."""
        count = int(seconds / self.STEP_SECONDS)
        times = [self._time - index * self.STEP_SECONDS for index in range(count, -1, -1)]
        rows = [[when, self._bytes(when)] for when in times]
        self._send("history", sample("history") | {"rows": rows, "marks": [], "gpu_rows": {}})
        self._send("tick", self._moved(sample("tick")))

    def send_tick(self, **changes: Any) -> None:
        """A tick whose kernel has these values, and no limit ahead."""
        self._time += self.STEP_SECONDS
        tick = self._moved(sample("tick"))
        tick["kernel"]["host"]["forecast"] = None
        tick["kernel"] |= changes
        self._send("tick", tick)

    def send_numbers(self, count: int) -> None:
        """So many samples, one step after the other."""
        for _ in range(count):
            self._time += self.STEP_SECONDS
            self._send("number", self._moved(sample("number")))

    def _moved(self, message: Any) -> Any:
        kernel = message.get("kernel", message)
        kernel["kernel_id"] = self._kernel_id
        message["time"] = kernel["host"]["time"] = self._time
        kernel["host"]["rss_bytes"] = kernel["host"]["used_bytes"] = self._bytes(self._time)
        return message

    def _bytes(self, when: float) -> int:
        return (200 + int(when) % 7) * 2**20

    def _send(self, kind: str, message: Any) -> None:
        assert self._socket is not None
        kernel = {"kernel_id": self._kernel_id}
        self._socket.send(json.dumps(message | {"type": kind} | (kernel if kind != "tick" else {})))
