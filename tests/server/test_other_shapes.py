"""Kept files of another shape than they should have: a sentence, and the others are shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Server
from .test_routes import keep


def folder(server: Server, bundle_id: str) -> Any:
    return server.app.web_app.settings["tfguard_service"].store.root / bundle_id


CHANGES: tuple[dict[str, Any], ...] = (
    {"activity": None},
    {"left": None},
    {"evidence": 5},
    {"arrays": [{"name": "x", "bytes": 10**400}]},
    {"memory": {"samples": [[1, 2, 3]], "limit_bytes": 10**400}},
)


@pytest.mark.parametrize("what", ["markdown", "bundle", "bundle/preview", "page"])
async def test_a_report_of_another_shape_is_a_sentence(server: Server, what: str) -> None:
    for change in CHANGES:
        await asked_for(server, what, change)


async def asked_for(server: Server, what: str, change: dict[str, Any]) -> None:
    bundle_id = keep(server)
    path = folder(server, bundle_id) / "report.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    asked = ["tfguard", "report", bundle_id]
    if what != "page":
        asked = ["tfguard", "api", "crashes", bundle_id, *what.split("/")]
    answer = await server.fetch(*asked, raise_error=False)
    assert answer.code in (200, 500)
    if answer.code == 500:
        assert b"an invalid structure" in answer.body
    assert b"Traceback" not in answer.body
