"""The live stream: ticks and numbers for each visible page; hidden pages receive none.

A ``tick`` contains everything that the panel shows. Between ticks, a ``number`` with the memory of the shown kernel is
sent for each new sample. If the panel is closed, only ``number`` messages are sent.
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

from ..decode import number_of
from .service import Service

RESOURCE = "tfguard"
SLOWEST_HERTZ, FASTEST_HERTZ, USUAL_HERTZ = 0.5, 10.0, 2.0
STATUS_SECONDS = 2.0
_MESSAGE_LIMIT = 4096


@dataclass(frozen=True)
class Watch:
    """What a page subscribes to.

    Attributes:
        kernel_id: The kernel that it shows.
        tick_seconds: Interval of ticks; None for a closed panel.
        number_seconds: Interval of numbers.
    """

    kernel_id: str | None = None
    tick_seconds: float | None = 1 / USUAL_HERTZ
    number_seconds: float = 1 / USUAL_HERTZ
    visible: bool = False


class StreamSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """``stream``: the client sends what it shows (``watch``); the server sends ``history`` once, ``tick``, ``number``,
    ``limits`` while memory of some kernel grows toward its limit, and ``deaths`` after each crash and after a report
    was read or deleted.
    """

    auth_resource = RESOURCE

    @property
    def service(self) -> Service:
        """The service of the extension."""
        return self.settings["tfguard_service"]  # type: ignore[no-any-return]

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Reject requests that do not open a stream."""
        if self.request.method != "GET":
            raise web.HTTPError(405)
        await ensure_async(super().prepare(*args, **kwargs))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Refuse without a page: Jupyter's own cannot be made for a stream, and would leave a traceback in the log."""
        self.finish()

    @ws_authenticated
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Authorise, and upgrade to a websocket."""
        allowed = await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "read", RESOURCE)
        )
        if not allowed:
            raise web.HTTPError(403)
        answer = super().get(*args, **kwargs)
        if answer is not None:
            await answer

    def open(self, *args: Any, **kwargs: Any) -> None:
        """A page has connected."""
        super().open(*args, **kwargs)
        self._watch = Watch()
        self._tick_due = self._limits_due = 0.0
        self._seen: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Future[None] | None = None
        self._warned = False
        self.service.client_came(self)

    def on_message(self, message: str | bytes) -> None:
        """Process a ``watch`` message; other messages are ignored, and logged once."""
        wanted = _parse(message)
        if wanted is None:
            if not self._warned:
                self._warned = True
                self.log.warning("tfguard: ignored an invalid message from a page.")
            return
        self._cancel()
        self._watch = wanted
        self._tick_due, self._seen = 0.0, None
        if not wanted.visible:
            return
        if wanted.kernel_id is not None and wanted.tick_seconds is not None:
            self._send(self.service.history(wanted.kernel_id))
        self._on_timer()

    def _on_timer(self) -> None:
        # If a page does not keep up with reading, messages are skipped rather than queued.
        if self._sending is None or self._sending.done():
            self._send_due()
        loop = asyncio.get_running_loop()
        pause = self._watch.number_seconds
        if self._watch.tick_seconds is not None:
            pause = min(pause, max(0.0, self._tick_due - loop.time()))
        self._timer = loop.call_later(pause, self._on_timer)

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
        # Without messages the page assumes a lost connection.
        self._send(number or {"type": "number", "time": time.time(), "kernel_id": kernel_id})

    def _is_new_sample(self, kernel_id: str | None) -> bool:
        sampled = self.service.sampled_at(kernel_id) if kernel_id is not None else None
        if sampled is None or sampled == self._seen:
            return False
        self._seen = sampled
        return True

    def hint_crashes(self, to_hidden: bool) -> None:
        """Notify the page of a changed list of crashes; a hidden page reloads the list anyway when it is shown."""
        if to_hidden or self._watch.visible:
            self._send({"type": "crashes"})

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._sending = self.write_message(json.dumps(message))
        except WebSocketClosedError:
            self._cancel()
            return
        assert self._sending is not None
        self._sending.add_done_callback(_retrieve_exception)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_close(self) -> None:
        """The page has disconnected."""
        self._cancel()
        self.service.client_went(self)
        super().on_close()

    def leave(self) -> None:
        """Close the connection because the server stops."""
        self._cancel()
        self.close(1001, "server stops")


def _parse(message: str | bytes) -> Watch | None:
    """The subscription in a ``watch`` message; None for anything else."""
    if len(message) > _MESSAGE_LIMIT:
        return None
    try:
        fields = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("type") != "watch":
        return None
    kernel_id, detail = fields.get("kernel_id"), fields.get("detail", "panel")
    rate = _hertz(fields.get("rate_hertz", USUAL_HERTZ))
    chart = _hertz(fields.get("chart_hertz", SLOWEST_HERTZ))
    if kernel_id is not None and not isinstance(kernel_id, str):
        return None
    if rate is None or chart is None or detail not in ("panel", "status"):
        return None
    visible = fields.get("visible") is not False
    if detail == "status":
        return Watch(kernel_id, None, STATUS_SECONDS, visible)
    return Watch(kernel_id, 1 / rate, 1 / max(rate, chart), visible)


def _hertz(rate: object) -> float | None:
    found = number_of(rate)
    return None if found is None else min(FASTEST_HERTZ, max(SLOWEST_HERTZ, float(found)))


def _retrieve_exception(sent: asyncio.Future[None]) -> None:
    # Retrieve the exception: asyncio would log it as an error, but a page may disconnect during a message.
    if not sent.cancelled():
        sent.exception()
