"""The routes: REST below ``tfguard/api/``, pages below ``tfguard/report``, all authenticated and authorised for ``tfguard``.

Reading needs the permission ``read``; changing and deleting need ``write``. The server's authorizer decides. The API
returns JSON or a file to save, never a page. Responses are not cached, and have no rights if a browser displays them.

Requests from the panel do not count as activity: an open page must not prevent the culling of a server.
"""

from __future__ import annotations

import asyncio
import json
import time

from jupyter_server.auth.decorator import authorized
from tornado import web

from .._version import __version__
from ..errors import FolderUnusable, TfGuardError
from ..record.bundle import READ, BundleStore
from ..redact import clean
from ..report.anonymous import Identity
from ..report.choices import Choices
from ..report.documents import crashes_json
from ..report.export import Export, export, shared_markdown
from .api import ApiHandler
from .pages import ListPage, ReportPage
from .socket import StreamSocket


class StatusHandler(ApiHandler):
    """``GET status``: the state of the guard, of all kernels and GPUs, and the parts that failed."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        problems = await asyncio.to_thread(self.service.problems)
        self.finish(
            {
                "version": __version__,
                "server_time": time.time(),
                "gpus": self.service.gpus(),
                "kernels": self.service.kernels(),
                "problems": problems,
            }
        )


class OptionsHandler(ApiHandler):
    """``GET options``: every option of the guard, with its value in this server, the source of the value, and how to change it."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        options = await asyncio.to_thread(self.service.options)
        self.finish({"schema_version": 1, "options": options})


class CrashesHandler(ApiHandler):
    """``GET crashes``: all reports, newest first; with ``unread=1`` only those that no user has read."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        entries = await asyncio.to_thread(self.service.store.entries)
        if self.get_query_argument("unread", "") not in ("", "0"):
            entries = [entry for entry in entries if entry.get("unread")]
        self.finish(crashes_json(entries))


class CrashHandler(ApiHandler):
    """``GET crashes/{id}``: one report. ``DELETE`` deletes it; this cannot be undone."""

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
            self.fail(507, f"Could not delete the report: {bad}.")
            return
        if done:
            self.service.on_list_changed()
            self.set_status(204)
            self.finish()


class MarkdownHandler(ApiHandler):
    """``GET crashes/{id}/markdown``: the report as text in a code block, for an issue. Names are removed as in an export."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        store = self.service.store
        identity = Identity.of_here()
        text = await self.load(
            lambda asked: shared_markdown(store.bundle(asked), store.report(asked), identity),
            bundle_id,
        )
        if text is not None:
            self.set_attachment_header(f"{bundle_id}.md")
            self.finish(text, set_content_type="text/markdown; charset=utf-8")


class ReadHandler(ApiHandler):
    """``POST crashes/{id}/read``: mark the report as read."""

    @web.authenticated
    @authorized
    async def post(self, bundle_id: str) -> None:
        def mark(bundle: str) -> bool:
            self.service.store.mark(bundle, READ)
            return True

        try:
            done = await self.load(mark, bundle_id)
        except OSError as bad:
            self.fail(507, f"Could not mark the report as read: {bad.strerror or bad}.")
            return
        if done:
            self.service.on_list_changed()
            self.set_status(204)
            self.finish()


class StacksHandler(ApiHandler):
    """``POST kernels/{id}/stacks``: the stack traces of all threads of a running kernel, as ``{"lines": [...]}``.

    The kernel keeps running. The answer is 409 with the reason if the kernel returns no stack traces.
    """

    @web.authenticated
    @authorized
    async def post(self, kernel_id: str) -> None:
        lines = await asyncio.to_thread(self.service.stacks, kernel_id)
        if lines is None:
            self.fail(404, "This server does not track the kernel.")
        elif not lines:
            self.fail(
                409,
                "The kernel did not return stack traces: it is stopped, or the guard is not loaded in it.",
            )
        else:
            self.finish({"lines": [clean(line) for line in lines]})


class ExportHandler(ApiHandler):
    """A route of an export.

    ``POST`` takes what to leave out and words to replace: ``{"without": ["stderr"], "replace": ["Miller"]}``. The words are
    in the body, not in the address, which servers log.
    """

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        await self.send(bundle_id, Choices())

    @web.authenticated
    @authorized("read")
    async def post(self, bundle_id: str) -> None:
        try:
            choices = Choices.decode(json.loads(self.request.body))
        except (ValueError, RecursionError):
            self.fail(400, "The body is not JSON.")
        except TfGuardError as bad:
            self.fail(400, str(bad))
        else:
            await self.send(bundle_id, choices)

    async def send(self, bundle_id: str, choices: Choices) -> None:
        """Answer with what this route has of the export."""
        raise NotImplementedError


class PreviewHandler(ExportHandler):
    """``GET crashes/{id}/bundle/preview``: the files of the export with size and text, what was removed and what is flagged."""

    async def send(self, bundle_id: str, choices: Choices) -> None:
        """Answer with JSON."""
        store = self.service.store
        preview = await self.load(
            lambda asked: _exported(store, asked, choices).preview(), bundle_id
        )
        if preview is not None:
            self.finish(preview)


class BundleHandler(ExportHandler):
    """``GET crashes/{id}/bundle``: the exported bundle as a zip file."""

    async def send(self, bundle_id: str, choices: Choices) -> None:
        """Answer with the file."""
        store = self.service.store
        zipped = await self.load(lambda asked: _exported(store, asked, choices).zipped(), bundle_id)
        if zipped is not None:
            self.set_attachment_header(f"tfguard-{bundle_id}.zip")
            self.finish(zipped, set_content_type="application/zip")


def _exported(store: BundleStore, bundle_id: str, choices: Choices) -> Export:
    return export(store.bundle(bundle_id), store.report(bundle_id), Identity.of_here(), choices)


_ID = r"([^/]+)"
HANDLERS: list[tuple[str, type]] = [
    (r"/tfguard/api/status", StatusHandler),
    (r"/tfguard/api/options", OptionsHandler),
    (r"/tfguard/api/crashes", CrashesHandler),
    (rf"/tfguard/api/crashes/{_ID}", CrashHandler),
    (rf"/tfguard/api/crashes/{_ID}/markdown", MarkdownHandler),
    (rf"/tfguard/api/crashes/{_ID}/read", ReadHandler),
    (rf"/tfguard/api/crashes/{_ID}/bundle", BundleHandler),
    (rf"/tfguard/api/crashes/{_ID}/bundle/preview", PreviewHandler),
    (rf"/tfguard/api/kernels/{_ID}/stacks", StacksHandler),
    (r"/tfguard/api/stream", StreamSocket),
    (r"/tfguard/report/?", ListPage),
    (rf"/tfguard/report/{_ID}", ReportPage),
]
