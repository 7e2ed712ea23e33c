"""From a kernel's death to a report one can read, beside the moment at which stock Jupyter says "restarting".

One real Jupyter server with the extension; both are measured at the same deaths, over its own websockets:

* event: tfguard's ``kernel_crash`` event arrives (the report can be read from then on)
* report: the whole report was fetched over REST after the event
* stock: the kernel's websocket carries the status ``restarting``

``python tests/benchmarks/death_latency.py [--quick] [--only CASE] [--json]``
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import Bench, Measure, paired
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_tfguard.demo.server import DemoServer
from tests.conftest import private_jupyter

EVENT = "https://schema.jupyter-tfguard.org/kernel_crash/v1"
HELD_BYTES = 1 << 30
# How the kernel is made to die, and what it runs before.
DEATHS = {
    "kill": (signal.SIGKILL, "1"),
    "segv": (signal.SIGSEGV, "1"),
    "busy": (signal.SIGKILL, "import time; time.sleep(600)"),
    "holding 1 GiB": (signal.SIGKILL, f"held = bytearray({HELD_BYTES})"),
}


async def one_round(server: DemoServer, how: str) -> dict[str, float]:
    """Seconds from the signal to each of the three."""
    number, code = DEATHS[how]
    session = server.start_session(server.write_notebook("dies"))
    kernel = session["kernel"]["id"]
    channels = await _socket(server, f"api/kernels/{kernel}/channels")
    events = await _socket(server, "api/events/subscribe")
    pid = await _watched_pid(server, kernel)
    await asyncio.to_thread(_execute, server, kernel, code)
    seen: dict[str, float] = {}
    started = time.monotonic()
    os.kill(pid, number)

    async def stock() -> None:
        while (await _message(channels))["content"].get("execution_state") != "restarting":
            pass
        seen["stock_seconds"] = time.monotonic() - started

    async def ours() -> None:
        message: dict[str, Any] = {}
        while message.get("schema_id") != EVENT or message["kernel_id"] != kernel:
            message = await _message(events)
        seen["event_seconds"] = time.monotonic() - started
        await asyncio.to_thread(server.get, f"tfguard/api/crashes/{message['id']}")
        seen["report_seconds"] = time.monotonic() - started

    await asyncio.gather(stock(), ours())
    channels.close()
    events.close()
    await asyncio.to_thread(server.end_session, session)
    return seen


async def _socket(server: DemoServer, path: str) -> WebSocketClientConnection:
    url = server.url.replace("http", "ws", 1) + path
    return await websocket_connect(
        HTTPRequest(url, headers={"Authorization": f"token {server.token}"})
    )


async def _message(socket: WebSocketClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await socket.read_message() or "{}")
    return found


async def _watched_pid(server: DemoServer, kernel: str) -> int:
    while (pid := await asyncio.to_thread(server.kernel_pid, kernel)) is None:
        await asyncio.sleep(0.1)
    return pid


def _execute(server: DemoServer, kernel: str, code: str) -> None:
    """Run a cell until it has ended, or, if it does not end, until it has begun."""
    client = server.connect(kernel)
    request = client.execute(code)
    wanted = "execute_input" if "sleep" in code else "status"
    state = "busy"
    while state == "busy":
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == request and message["msg_type"] == wanted:
            state = message["content"].get("execution_state", "")
    client.stop_channels()


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "death_latency",
        "Seconds from a kernel's death to our event, to the fetched report, and to stock Jupyter's status",
        repetitions=20,
        quick_repetitions=3,
    )
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder, private_jupyter(Path(folder)):
        (work := Path(folder) / "work").mkdir()
        server = DemoServer(work, lab=False)

        def case(how: str) -> Measure:
            return lambda: loop.run_until_complete(asyncio.wait_for(one_round(server, how), 60))

        try:
            rows = bench.run({how: case(how) for how in DEATHS})
        finally:
            server.stop()
            loop.close()
    ratios = {
        f"{how}: stock / event": paired(rows, (how, "stock_seconds"), (how, "event_seconds"))
        for how in DEATHS
    }
    bench.report(rows, ratios)


if __name__ == "__main__":
    main()
