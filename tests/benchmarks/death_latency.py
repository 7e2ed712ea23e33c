"""From a kernel's death to a report one can read, beside the moment at which stock Jupyter says "restarting".

One real Jupyter server with the extension; both are measured at the same deaths, over its own websockets:

* event: tfguard's ``kernel_death`` event arrives (the report can be read from then on)
* report: the whole report was fetched over REST after the event
* stock: the kernel's websocket carries the status ``restarting``

``python tests/benchmarks/death_latency.py [--quick] [--only CASE] [--json]``
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from bench import Bench, Measure, paired
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

TOKEN = uuid.uuid4().hex
EVENT = "https://schema.jupyter-tfguard.org/kernel_death/v1"
HELD_BYTES = 1 << 30
# How the kernel is made to die, and what it runs before.
DEATHS = {
    "kill": (signal.SIGKILL, ""),
    "segv": (signal.SIGSEGV, ""),
    "busy": (signal.SIGKILL, "import time; time.sleep(600)"),
    "holding 1 GiB": (signal.SIGKILL, f"held = bytearray({HELD_BYTES})"),
}


class Server:
    """A Jupyter server in private folders."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {
            "TFGUARD_DIR": str(folder / "tfguard"),
            "IPYTHONDIR": str(folder / "ipython"),
            **{f"JUPYTER_{n}_DIR": str(folder / n.lower()) for n in ("CONFIG", "DATA", "RUNTIME")},
        }
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                *("--port=0", "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={TOKEN}"),
                "--ServerApp.jpserver_extensions={'jupyter_tfguard': True}",
                f"--ServerApp.root_dir={folder}",
            ],
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stderr is not None
        found = None
        while found is None:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("The Jupyter server did not start.")
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        self.port = int(found[1])
        # Read on, or the server blocks on a full pipe.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    async def answers(self) -> None:
        """Wait until it does: it prints its address before it listens."""
        for _ in range(100):
            try:
                await self.call("api")
                return
            except ConnectionRefusedError:
                await asyncio.sleep(0.1)
        raise SystemExit("The Jupyter server does not answer.")

    async def call(self, path: str, method: str = "GET") -> Any:
        request = HTTPRequest(
            f"http://127.0.0.1:{self.port}/{path}",
            method=method,
            headers={"Authorization": f"token {TOKEN}"},
            body="{}" if method == "POST" else None,
            request_timeout=30,
        )
        answer = await AsyncHTTPClient().fetch(request)
        return json.loads(answer.body) if answer.body else None

    async def socket(self, path: str) -> WebSocketClientConnection:
        url = f"ws://127.0.0.1:{self.port}/{path}"
        return await websocket_connect(
            HTTPRequest(url, headers={"Authorization": f"token {TOKEN}"})
        )

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


async def one_round(server: Server, how: str) -> dict[str, float]:
    """Seconds from the signal to each of the three."""
    number, code = DEATHS[how]
    kernel = (await server.call("api/kernels", "POST"))["id"]
    channels = await server.socket(f"api/kernels/{kernel}/channels")
    events = await server.socket("api/events/subscribe")
    pid = await _watched_pid(server, kernel)
    await _execute(channels, code)
    seen: dict[str, float] = {}
    started = time.monotonic()
    os.kill(pid, number)

    async def stock() -> None:
        while True:
            message = json.loads(await channels.read_message())
            if message["content"].get("execution_state") == "restarting":
                seen["stock_seconds"] = time.monotonic() - started
                return

    async def ours() -> None:
        while True:
            message = json.loads(await events.read_message())
            if message.get("schema_id") == EVENT and message["kernel_id"] == kernel:
                seen["event_seconds"] = time.monotonic() - started
                await server.call(f"tfguard/api/crashes/{message['id']}")
                seen["report_seconds"] = time.monotonic() - started
                return

    await asyncio.gather(stock(), ours())
    channels.close()
    events.close()
    # Jupyter Server 2.21 cannot delete a kernel that it is restarting, and then cannot stop either.
    while await _watched_pid(server, kernel) == pid:
        await asyncio.sleep(0.1)
    await server.call(f"api/kernels/{kernel}", "DELETE")
    return seen


async def _watched_pid(server: Server, kernel: str) -> int:
    while True:
        kernels = (await server.call("tfguard/api/status"))["kernels"]
        found = next((k for k in kernels if k["kernel_id"] == kernel), None)
        if found and found["pid"] and found["guard"]["loaded"]:
            return int(found["pid"])
        await asyncio.sleep(0.1)


async def _execute(channels: WebSocketClientConnection, code: str) -> None:
    """Run a cell until it has ended; of one that does not end, until it surely has begun."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
    header |= {"username": "benchmark", "session": uuid.uuid4().hex, "date": "2026-01-01T00:00:00Z"}
    content = {"code": code or "1", "silent": False, "store_history": True, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    await channels.write_message(json.dumps(message | {"channel": "shell", "buffers": []}))
    if "sleep" in code:
        await asyncio.sleep(2)
        return
    while True:
        answer = json.loads(await channels.read_message())
        if answer["msg_type"] == "execute_reply":
            return


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "death_latency",
        "Seconds from a kernel's death to our event, to the fetched report, and to stock Jupyter's status",
        repetitions=20,
        quick_repetitions=3,
    )
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))

        def case(how: str) -> Measure:
            return lambda: loop.run_until_complete(asyncio.wait_for(one_round(server, how), 60))

        try:
            loop.run_until_complete(server.answers())
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
