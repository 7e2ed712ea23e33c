"""What all routes have in common: who may ask, and what a browser may do with the answer."""

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
        except OTHER_SHAPE as bad:
            note_problem("reading a saved report", bad)
            self.fail(500, f"The report {bundle_id} has an invalid structure.")
        return None

    def fail(self, status: int, sentence: str) -> None:
        """Answer with an error in a sentence."""
        self.set_status(status)
        self.finish({"message": sentence})
