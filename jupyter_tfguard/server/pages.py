"""Reports as pages of the server, for hosts without the panel: Notebook 7, VS Code, a plain browser tab.

The permissions are those of the API. A page contains no scripts, and the browser is not allowed to run any.
"""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from ..errors import BundleNotFound, RecordUnreadable
from ..report import html
from .api import ApiHandler


class Page(ApiHandler):
    """A page: same access checks as the API, but a browser that is not logged in is redirected to the login."""

    @property
    def content_security_policy(self) -> str:
        """Nothing is loaded and nothing runs; the only style sheet is allowed by its hash."""
        strict = super(ApiHandler, self).content_security_policy
        rights = "sandbox allow-same-origin allow-downloads"
        return f"{strict}; style-src '{html.style_hash()}'; base-uri 'none'; form-action 'none'; {rights}"

    def get_login_url(self) -> str:
        """The login page; an API route would refuse instead."""
        return str(JupyterHandler.get_login_url(self))

    def address(self, *parts: str) -> str:
        """Path of another tfguard route."""
        return str(url_path_join(self.base_url, "tfguard", *parts))

    def show(self, page: str) -> None:
        """Respond with a page."""
        self.finish(page, set_content_type="text/html; charset=utf-8")


class ListPage(Page):
    """``GET tfguard/report``: all crashes, each with a link to its report; a page to bookmark."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        entries = await asyncio.to_thread(self.service.store.entries)
        self.show(html.render_list(entries, lambda report_id: self.address("report", report_id)))


class ReportPage(Page):
    """``GET tfguard/report/{id}``: one report."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        try:
            page = await asyncio.to_thread(self._page, bundle_id)
        except BundleNotFound:
            sentence = "It was deleted, by a user or to make room for newer reports."
            self._message(404, "No such report", sentence)
        except RecordUnreadable as bad:
            self._message(500, "This report cannot be shown", str(bad))
        else:
            self.show(page)

    def _page(self, bundle_id: str) -> str:
        report: dict[str, Any] = self.service.store.report(bundle_id)
        crash = self.address("api", "crashes", bundle_id)
        links = html.Links(self.address("report"), f"{crash}/markdown", f"{crash}/bundle")
        return html.render(report, links)

    def _message(self, status: int, title: str, sentence: str) -> None:
        self.set_status(status)
        self.show(html.render_message(title, sentence, self.address("report")))
