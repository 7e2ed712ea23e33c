"""A report as a redacted bundle to hand on: first as a person sees what is in it, then as a zip to save."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from ..record.bundle import BundleStore
from ..report.anonymous import Identity
from ..report.export import Export, export
from .api import ApiHandler


class PreviewHandler(ApiHandler):
    """``GET crashes/{id}/bundle/preview``: each file with its size and text, and how much was taken out."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        store = self.service.store
        preview = await self.load(lambda asked: _exported(store, asked).preview(), bundle_id)
        if preview is not None:
            self.finish(preview)


class BundleHandler(ApiHandler):
    """``GET crashes/{id}/bundle``: the same as a zip to save."""

    @web.authenticated
    @authorized
    async def get(self, bundle_id: str) -> None:
        store = self.service.store
        zipped = await self.load(lambda asked: _exported(store, asked).zipped(), bundle_id)
        if zipped is not None:
            self.set_attachment_header(f"tfguard-{bundle_id}.zip")
            self.finish(zipped, set_content_type="application/zip")


def _exported(store: BundleStore, bundle_id: str) -> Export:
    return export(store.bundle(bundle_id), store.report(bundle_id), Identity.of_here())
