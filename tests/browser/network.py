"""The network between page and server, in the hands of a test: counted, silent, or cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page, WebSocketRoute

_STREAM = "/tfguard/api/stream"
_EVENTS = "/api/events/subscribe"


class Network:
    """Stands between one page and the server: tfguard's stream, and Jupyter's stream of events.

    Args:
        page: Before it is opened.

    Attributes:
        received: Messages of tfguard's stream that reached the page.
        opened: How often the page has opened it.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._silent: set[WebSocketRoute] = set()
        self._sockets: list[WebSocketRoute] = []
        self._is_cut = False
        self.received: list[dict[str, Any]] = []
        self.opened = 0
        page.route_web_socket(lambda url: _STREAM in url or _EVENTS in url, self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self._is_cut:
            socket.close()
            return
        is_stream = _STREAM in socket.url
        self.opened += is_stream
        self._sockets.append(socket)
        server = socket.connect_to_server()

        def take(message: str | bytes) -> None:
            if socket not in self._silent:
                if is_stream:
                    self.received.append(json.loads(message))
                socket.send(message)

        server.on_message(take)

    def silence(self) -> None:
        """What is open stays open, and nothing comes through any more; what is opened from now on works."""
        self._silent.update(self._sockets)

    def cut(self) -> None:
        """Nothing works."""
        self._page.context.set_offline(True)
        self.cut_streams()

    def cut_streams(self) -> None:
        """Both streams are closed, and do not open; requests and the kernels' own sockets work."""
        self._is_cut = True
        for socket in self._sockets:
            socket.close()
        self._sockets.clear()

    def mend(self) -> None:
        """All works."""
        self._is_cut = False
        self._page.context.set_offline(False)

    def count(self, seconds: float) -> int:
        """Messages that reach the page from now on."""
        before = len(self.received)
        self._page.wait_for_timeout(seconds * 1000)
        return len(self.received) - before
