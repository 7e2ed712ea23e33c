"""The demo's server is asked directly, no proxy learns its token; it is asked until a session is gone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from jupyter_tfguard.demo.server import DemoServer
from tests.conftest import private_jupyter
from tests.rigs.waiting import wait_until

SLOW_RESTART = """
import asyncio
from jupyter_client.provisioning import LocalProvisioner
launch, launched = LocalProvisioner.launch_kernel, []
async def slow(self, *arguments, **more):
    await asyncio.sleep(1.5 * len(launched))
    launched.append(1)
    return await launch(self, *arguments, **more)
LocalProvisioner.launch_kernel = slow
"""


class Counted(HTTPServer):
    """Answers everything with an empty object, and remembers who sent which token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.tokens: list[str | None] = []


class _Answer(BaseHTTPRequestHandler):
    server: Counted

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def servers() -> Iterator[tuple[Counted, Counted]]:
    made = (Counted(), Counted())
    for one in made:
        threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01}).start()
    yield made
    for one in made:
        one.shutdown()
        one.server_close()


@pytest.mark.quick
def test_the_token_goes_to_the_server_and_to_no_proxy(
    servers: tuple[Counted, Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    jupyter, proxy = servers
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
    asked = DemoServer.__new__(DemoServer)
    asked.url, asked.token = f"http://127.0.0.1:{jupyter.server_port}/", "known-to-us"
    assert asked.get("tfguard/api/status") == {}
    assert proxy.tokens == []
    assert jupyter.tokens == ["token known-to-us"]


def test_a_session_ends_although_its_dead_kernel_is_just_being_restarted(tmp_path: Path) -> None:
    config = tmp_path / "slow_restart.py"
    config.write_text(SLOW_RESTART)
    with private_jupyter(tmp_path / "home"):
        server = DemoServer(tmp_path / "work", lab=False, options=[f"--config={config}"])
        try:
            session = server.start_session(server.write_notebook("dies"))
            kernel_id = session["kernel"]["id"]
            pid = wait_until(lambda: server.kernel_pid(kernel_id), "the process")
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: "restarting kernel" in server.log_tail() or None, "the restart")
            server.end_session(session)
            assert server.get("api/sessions") == []
            assert server.get("api/kernels") == []
            server.end_session(session)  # gone already
        finally:
            server.stop()
