"""What the server sends a page on tfguard's stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocketRoute

_STREAM = "/tfguard/api/stream"


class Network:
    """Stands between one page and tfguard's stream.

    Args:
        page: Before it is opened.

    Attributes:
        received: The messages, in order.
    """

    def __init__(self, page: Page) -> None:
        self.received: list[dict[str, Any]] = []
        page.route_web_socket(lambda url: _STREAM in url, self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def take(message: str | bytes) -> None:
            self.received.append(json.loads(message))
            socket.send(message)

        server.on_message(take)
