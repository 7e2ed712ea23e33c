"""The REST routes, all below ``tfguard/api/``: authenticated and authorised for the resource ``tfguard``.

Watching the panel is no activity: an open page must not keep a server from being culled.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from .._version import __version__
from ..errors import BundleNotFound, RecordUnreadable
from ..record.bundle import READ
from ..report.markdown import render
from ..shield import read_problems
from .service import Service
from .socket import StreamSocket

RESOURCE = "tfguard"


class _Handler(APIHandler):
    auth_resource = RESOURCE
    _track_activity = False

    @property
    def service(self) -> Service:
        """What the extension runs."""
        return self.settings["tfguard_service"]  # type: ignore[no-any-return]

    async def load(self, read: Any, bundle_id: str) -> Any:
        """The store's answer, read off the event loop; None after a 404 or 500 was sent."""
        try:
            return await asyncio.to_thread(read, bundle_id)
        except BundleNotFound as missing:
            self.fail(404, str(missing))
        except RecordUnreadable as bad:
            self.fail(500, str(bad))
        return None

    def fail(self, status: int, sentence: str) -> None:
        """Answer with an error in a sentence."""
        self.set_status(status)
        self.finish({"message": sentence})


class StatusHandler(_Handler):
    """``GET status``: the guard, all kernels, the GPUs, and what did not work."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        problems = await asyncio.to_thread(read_problems)
        self.finish(
            {
                "version": __version__,
                "server_time": time.time(),
                "gpus": self.service.gpus(),
                "kernels": self.service.kernels(),
                "problems": self.service.problems(problems),
            }
        )


class CrashesHandler(_Handler):
    """``GET crashes``: the list, newest first; with ``unread=1`` only what nobody has seen."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        entries = await asyncio.to_thread(self.service.store.entries)
        if self.get_query_argument("unread", "") not in ("", "0"):
            entries = [entry for entry in entries if entry.get("unread")]
        self.finish({"crashes": entries})


class CrashHandler(_Handler):
    """``GET crashes/{id}``: one report."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        report = await self.load(self.service.store.report, bundle_id)
        if report is not None:
            self.finish(report)


class MarkdownHandler(_Handler):
    """``GET crashes/{id}/markdown``: the report as text, for an issue or a mail."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        report = await self.load(self.service.store.report, bundle_id)
        if report is not None:
            self.finish(render(report), set_content_type="text/markdown; charset=utf-8")


class ReadHandler(_Handler):
    """``POST crashes/{id}/read``: a person has seen it."""

    @web.authenticated
    @authorized
    async def post(self, bundle_id: str) -> None:
        def mark(bundle: str) -> bool:
            self.service.store.mark(bundle, READ)
            return True

        try:
            done = await self.load(mark, bundle_id)
        except OSError as bad:
            self.fail(507, f"The report could not be marked as read: {bad.strerror or bad}.")
            return
        if done:
            self.set_status(204)
            self.finish()


_ID = r"([^/]{1,100})"
HANDLERS: list[tuple[str, type]] = [
    (r"/tfguard/api/status", StatusHandler),
    (r"/tfguard/api/crashes", CrashesHandler),
    (rf"/tfguard/api/crashes/{_ID}", CrashHandler),
    (rf"/tfguard/api/crashes/{_ID}/markdown", MarkdownHandler),
    (rf"/tfguard/api/crashes/{_ID}/read", ReadHandler),
    (r"/tfguard/api/stream", StreamSocket),
]
