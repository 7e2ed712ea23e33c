"""The demo's server is asked directly: no proxy learns its token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from jupyter_tfguard.demo.server import DemoServer

pytestmark = pytest.mark.quick


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
