"""The live stream: ticks and numbers to each open page, and none to a hidden one.

A ``tick`` is all that the panel shows. Between ticks a ``number`` tells of the open kernel's memory, as often as there is a
new sample; with the panel closed it comes alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from ..units import is_known
from .service import Service

RESOURCE = "tfguard"
SLOWEST_HERTZ, FASTEST_HERTZ, USUAL_HERTZ = 0.5, 10.0, 2.0
STATUS_SECONDS = 2.0
_MESSAGE_LIMIT = 4096


@dataclass(frozen=True)
class Watch:
    """What a page wishes.

    Attributes:
        kernel_id: Whose memory it looks at.
        tick_seconds: Between ticks; None for a closed panel.
        number_seconds: Between numbers.
    """

    kernel_id: str | None = None
    tick_seconds: float | None = 1 / USUAL_HERTZ
    number_seconds: float = 1 / USUAL_HERTZ
    visible: bool = False


class StreamSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``stream``: the client says what it shows (``watch``); the server sends ``history`` once, ``tick`` and ``number``,
    ``limits`` while memory of some kernel grows toward its limit, and ``deaths`` after each death, and once a report was
    read or forgotten.
    """

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
        self._watch = Watch()
        self._tick_due = self._limits_due = 0.0
        self._seen: float | None = None
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
                self.log.warning("tfguard: ignored an invalid message from a page.")
            return
        self._cancel()
        self._watch = wanted
        self._tick_due, self._seen = 0.0, None
        if not wanted.visible:
            return
        if wanted.kernel_id is not None and wanted.tick_seconds is not None:
            self._send(self.service.history(wanted.kernel_id))
        self._beat()

    def _beat(self) -> None:
        # To a page that does not keep up with reading, messages are left out rather than piled up.
        if self._sending is None or self._sending.done():
            self._send_due()
        loop = asyncio.get_running_loop()
        pause = self._watch.number_seconds
        if self._watch.tick_seconds is not None:
            pause = min(pause, max(0.0, self._tick_due - loop.time()))
        self._timer = loop.call_later(pause, self._beat)

    def _send_due(self) -> None:
        kernel_id, tick_seconds = self._watch.kernel_id, self._watch.tick_seconds
        now = asyncio.get_running_loop().time()
        if now >= self._limits_due:
            self._limits_due = now + STATUS_SECONDS
            if kernels := self.service.limits_ahead():
                self._send({"type": "limits", "kernels": kernels})
        if tick_seconds is None:
            self._send_status(kernel_id)
        elif now >= self._tick_due:
            self._tick_due = now + tick_seconds
            self._is_new_sample(kernel_id)
            self._send(self.service.tick(kernel_id) | {"type": "tick", "time": time.time()})
        elif self._is_new_sample(kernel_id):
            self._send_status(kernel_id)

    def _send_status(self, kernel_id: str | None) -> None:
        number = self.service.number(kernel_id) if kernel_id is not None else None
        # The page takes silence for a connection that is lost.
        self._send(number or {"type": "number", "time": time.time(), "kernel_id": kernel_id})

    def _is_new_sample(self, kernel_id: str | None) -> bool:
        sampled = self.service.sampled_at(kernel_id) if kernel_id is not None else None
        if sampled is None or sampled == self._seen:
            return False
        self._seen = sampled
        return True

    def hint_deaths(self, to_hidden: bool) -> None:
        """The list of deaths has changed; a hidden page reads it anyway when it is shown."""
        if to_hidden or self._watch.visible:
            self._send({"type": "deaths"})

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


def _parse(message: str | bytes) -> Watch | None:
    """The wish in a ``watch``; None for anything else."""
    if len(message) > _MESSAGE_LIMIT:
        return None
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.get("type") != "watch":
        return None
    kernel_id, detail = told.get("kernel_id"), told.get("detail", "panel")
    rate = _hertz(told.get("rate_hertz", USUAL_HERTZ))
    chart = _hertz(told.get("chart_hertz", SLOWEST_HERTZ))
    if kernel_id is not None and not isinstance(kernel_id, str):
        return None
    if rate is None or chart is None or detail not in ("panel", "status"):
        return None
    visible = told.get("visible") is not False
    if detail == "status":
        return Watch(kernel_id, None, STATUS_SECONDS, visible)
    return Watch(kernel_id, 1 / rate, 1 / max(rate, chart), visible)


def _hertz(rate: object) -> float | None:
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not is_known(rate):
        return None
    return min(FASTEST_HERTZ, max(SLOWEST_HERTZ, float(rate)))


def _look_at(sent: asyncio.Future[None]) -> None:
    # A page that closed in the middle of a message is no error; unlooked-at it would be logged as one.
    if not sent.cancelled():
        sent.exception()
