"""The REST routes, all below ``tfguard/api/``: authenticated and authorised for the resource ``tfguard``.

Reading needs the permission ``read``, what changes or deletes needs ``write``; the server's authorizer gives them. No
answer is a page: it is JSON or a file to save, kept by no cache, and without rights if a browser should show it.

Watching the panel is no activity: an open page must not keep a server from being culled.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from .._version import __version__
from ..errors import BundleNotFound, FolderUnusable, RecordUnreadable
from ..record.bundle import READ
from ..redact import clean
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

    def set_default_headers(self) -> None:
        """Nothing of it is kept by a cache, guessed to be a page, or told to another site."""
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")

    @property
    def content_security_policy(self) -> str:
        """As of any route that answers in JSON, and a sandbox without rights around it."""
        return f"{super().content_security_policy}; sandbox"

    async def prepare(self) -> None:
        """Refuse what another site's page asks with this browser's cookie, reading too."""
        await super().prepare()
        told = self.request.headers
        elsewhere = told.get("Sec-Fetch-Site") in ("cross-site", "same-site") or "Referer" in told
        if elsewhere and self.request.method in ("GET", "HEAD"):
            self.check_xsrf_cookie()  # the token of this server's own pages, or one of them as referrer

    def check_origin(self, origin_to_satisfy_tornado: str = "") -> bool:
        """True for this site, and for the sites that the server allows.

        Raises:
            HTTPError: 403 for any other.
        """
        if not super().check_origin(origin_to_satisfy_tornado):
            raise web.HTTPError(403)
        return True

    @allow_unauthenticated
    def options(self, *args: Any, **kwargs: Any) -> None:
        """What browsers ask before another site's page may ask anything; answered where the server allows such sites."""
        if not (self.allow_origin or self.allow_origin_pat):
            raise web.HTTPError(405)
        super().options(*args, **kwargs)

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
    """``GET crashes/{id}``: one report. ``DELETE``: forget it, for good."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        report = await self.load(self.service.store.report, bundle_id)
        if report is not None:
            self.finish(report)

    @web.authenticated
    @authorized
    async def delete(self, bundle_id: str) -> None:
        def forget(bundle: str) -> bool:
            self.service.store.remove(bundle)
            return True

        try:
            done = await self.load(forget, bundle_id)
        except (OSError, FolderUnusable) as bad:
            self.fail(507, f"The report could not be removed: {bad}.")
            return
        if done:
            self.set_status(204)
            self.finish()


class MarkdownHandler(_Handler):
    """``GET crashes/{id}/markdown``: the report as text, for an issue or a mail."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        report = await self.load(self.service.store.report, bundle_id)
        if report is not None:
            self.set_attachment_header(f"{bundle_id}.md")
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


class StacksHandler(_Handler):
    """``POST kernels/{id}/stacks``: what every thread of a running kernel is doing, as ``{"lines": [...]}``.

    The kernel is not stopped. One that gives no stacks is answered with 409 and a sentence.
    """

    @web.authenticated
    @authorized
    async def post(self, kernel_id: str) -> None:
        lines = await asyncio.to_thread(self.service.stacks, kernel_id)
        if lines is None:
            self.fail(404, "This kernel is not watched here.")
        elif not lines:
            self.fail(
                409, "This kernel gave no stacks: it is stopped, or the guard is not loaded in it."
            )
        else:
            self.finish({"lines": [clean(line) for line in lines]})


_ID = r"([^/]+)"
HANDLERS: list[tuple[str, type]] = [
    (r"/tfguard/api/status", StatusHandler),
    (r"/tfguard/api/crashes", CrashesHandler),
    (rf"/tfguard/api/crashes/{_ID}", CrashHandler),
    (rf"/tfguard/api/crashes/{_ID}/markdown", MarkdownHandler),
    (rf"/tfguard/api/crashes/{_ID}/read", ReadHandler),
    (rf"/tfguard/api/kernels/{_ID}/stacks", StacksHandler),
    (r"/tfguard/api/stream", StreamSocket),
]
