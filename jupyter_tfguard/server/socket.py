"""The live stream: one message per tick to each open page, and none to a hidden one."""

from __future__ import annotations

import asyncio
import json
import math
import time
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from .service import Service

RESOURCE = "tfguard"
SLOWEST_HERTZ, FASTEST_HERTZ, USUAL_HERTZ = 0.5, 10.0, 2.0
_MESSAGE_LIMIT = 4096


class StreamSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``stream``: the client says what it looks at (``watch``), the server sends ``history`` once, and ``tick``."""

    auth_resource = RESOURCE

    @property
    def service(self) -> Service:
        """What the extension runs."""
        return self.settings["tfguard_service"]  # type: ignore[no-any-return]

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Refuse everything that does not open a stream."""
        if self.request.method != "GET":
            raise web.HTTPError(405)
        await ensure_async(super().prepare(*args, **kwargs))

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Authorise, and become a websocket."""
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "read", RESOURCE)
        )
        if not allowed:
            raise web.HTTPError(403)
        answer = super().get(*args, **kwargs)
        if answer is not None:
            await answer

    def open(self, *args: Any, **kwargs: Any) -> None:
        """A page has come."""
        super().open(*args, **kwargs)
        self._kernel_id: str | None = None
        self._pause_seconds = 1 / USUAL_HERTZ
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Future[None] | None = None
        self._complained = False
        self.service.client_came(self)

    def on_message(self, message: str | bytes) -> None:
        """Take a ``watch``; anything else is ignored, and noted in the log once."""
        wanted = _parse(message)
        if wanted is None:
            if not self._complained:
                self._complained = True
                self.log.warning("tfguard: a page sent a message that is not understood; ignored.")
            return
        self._cancel()
        kernel_id, hertz, visible = wanted
        self._kernel_id = kernel_id
        self._pause_seconds = 1 / hertz
        if not visible:
            return
        if kernel_id is not None:
            self._send(self.service.history(kernel_id))
        self._tick()

    def _tick(self) -> None:
        # To a page that does not keep up with reading, ticks are left out rather than piled up.
        if self._sending is None or self._sending.done():
            self._send(self.service.tick(self._kernel_id) | {"type": "tick", "time": time.time()})
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._pause_seconds, self._tick)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._sending = self.write_message(json.dumps(message))
        except WebSocketClosedError:
            self._cancel()
            return
        assert self._sending is not None
        self._sending.add_done_callback(_look_at)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_close(self) -> None:
        """The page has gone."""
        self._cancel()
        self.service.client_went(self)
        super().on_close()

    def leave(self) -> None:
        """The server stops: no more ticks."""
        self._cancel()
        self.close(1001, "server stops")


def _parse(message: str | bytes) -> tuple[str | None, float, bool] | None:
    """Kernel id, rate and visibility of a ``watch``; None for anything else."""
    if len(message) > _MESSAGE_LIMIT:
        return None
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("type") != "watch":
        return None
    kernel_id, rate = told.get("kernel_id"), told.get("rate_hertz", USUAL_HERTZ)
    if kernel_id is not None and not isinstance(kernel_id, str):
        return None
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not math.isfinite(rate):
        return None
    hertz = min(FASTEST_HERTZ, max(SLOWEST_HERTZ, float(rate)))
    return kernel_id, hertz, told.get("visible") is not False


def _look_at(sent: asyncio.Future[None]) -> None:
    # A page that closed in the middle of a message is no error; unlooked-at it would be logged as one.
    if not sent.cancelled():
        sent.exception()
