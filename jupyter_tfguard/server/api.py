"""Base class of all routes: access checks, and response headers that restrict the browser."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyter_server.base.handlers import APIHandler
from tornado import web

from ..errors import OTHER_SHAPE, BundleNotFound, RecordUnreadable
from ..shield import note_problem
from .service import Service

RESOURCE = "tfguard"


class ApiHandler(APIHandler):
    """A route below ``tfguard/api/``."""

    auth_resource = RESOURCE
    _track_activity = False

    @property
    def service(self) -> Service:
        """The service of the extension."""
        return self.settings["tfguard_service"]  # type: ignore[no-any-return]

    def set_default_headers(self) -> None:
        """Prevent caching, content type sniffing and referrers."""
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "no-referrer")

    @property
    def content_security_policy(self) -> str:
        """The policy of a JSON route, plus a sandbox without rights."""
        return f"{super().content_security_policy}; sandbox"

    async def prepare(self) -> None:
        """Reject requests that another site's page makes with this browser's cookie, reads included."""
        await super().prepare()
        headers = self.request.headers
        elsewhere = (
            headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") or "Referer" in headers
        )
        if elsewhere and self.request.method in ("GET", "HEAD"):
            self.check_xsrf_cookie()  # accepts the token of this server's pages, or one of them as referrer

    def check_origin(self, origin_to_satisfy_tornado: str = "") -> bool:
        """True for this site and for sites that the server allows.

        Raises:
            HTTPError: 403 for any other site.
        """
        if not super().check_origin(origin_to_satisfy_tornado):
            raise web.HTTPError(403)
        return True

    @allow_unauthenticated
    def options(self, *args: Any, **kwargs: Any) -> None:
        """Answer a CORS preflight request if the server allows other sites."""
        if not (self.allow_origin or self.allow_origin_pat):
            raise web.HTTPError(405)
        super().options(*args, **kwargs)

    async def load(self, read: Any, bundle_id: str) -> Any:
        """Read from the store in a thread; None after a 404 or 500 was sent."""
        try:
            return await asyncio.to_thread(read, bundle_id)
        except BundleNotFound as missing:
            self.fail(404, str(missing))
        except RecordUnreadable as bad:
            self.fail(500, str(bad))
        except OTHER_SHAPE as bad:
            note_problem("reading a saved report", bad)
            self.fail(500, f"The report {bundle_id} has an invalid structure.")
        return None

    def fail(self, status: int, sentence: str) -> None:
        """Respond with an error message."""
        self.set_status(status)
        self.finish({"message": sentence})
