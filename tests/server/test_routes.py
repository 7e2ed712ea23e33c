"""The REST routes: what they answer, and to whom."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import Authorizer
from tornado.routing import PathMatches, RuleRouter
from traitlets.config import Config

from jupyter_tfguard.record.bundle import READ, new_bundle_id
from jupyter_tfguard.server.handlers import HANDLERS

from .conftest import Server, refused

ENTRY = {
    "kernel_id": "k",
    "pid": 4711,
    "cause": "cgroup_oom",
    "confidence": "certain",
    "title": "The kernel used all of its container's memory",
    "died_at": "2026-11-21T02:14:07.123Z",
    "kernel_alive": False,
}


def keep(server: Server, died: float = 1.0) -> str:
    """A report in the store, made of the sample that both sides of the wire read."""
    bundle_id = new_bundle_id(4711, died)
    with (server.samples / "report.json").open() as sample:
        report = json.load(sample)
    entry = ENTRY | {"id": bundle_id}
    bundle = {"id": bundle_id, "format": [1, 0]}
    server.app.web_app.settings["tfguard_service"].store.save(bundle, report | entry, entry)
    return bundle_id


async def test_status(server: Server) -> None:
    status = await server.get("status")
    assert status["version"]
    assert status["kernels"] == []
    assert status["problems"] == []
    assert status["gpus"]["state"] in ("none", "ok", "starting", "unavailable")
    with (server.samples / "status.json").open() as sample:
        assert set(status) == set(json.load(sample))


async def test_options_are_those_of_this_server(server: Server) -> None:
    answer = await server.get("options")
    by_name = {option["name"]: option for option in answer["options"]}
    assert by_name["enabled"]["value"] is True
    assert by_name["enabled"]["origin"] == "default"
    assert by_name["busy_hertz"]["help"]
    with (server.samples / "options.json").open() as sample:
        assert set(by_name["enabled"]) == set(json.load(sample)["options"][0])


async def test_the_list_is_newest_first_and_can_be_of_the_unread_only(server: Server) -> None:
    old, new = keep(server, 1e9), keep(server, 2e9)
    assert [c["id"] for c in (await server.get("crashes"))["crashes"]] == [new, old]
    answer = await server.fetch("tfguard", "api", "crashes", new, "read", method="POST", body="")
    assert answer.code == 204
    crashes = (await server.get("crashes"))["crashes"]
    assert [(c["id"], c["unread"]) for c in crashes] == [(new, False), (old, True)]
    unread = await server.get("crashes", params={"unread": "1"})
    assert [c["id"] for c in unread["crashes"]] == [old]


async def test_a_report_as_json_and_as_markdown(server: Server) -> None:
    bundle_id = keep(server)
    report = await server.get("crashes", bundle_id)
    assert report["id"] == bundle_id
    assert report["advice"]
    answer = await server.fetch("tfguard", "api", "crashes", bundle_id, "markdown")
    assert answer.headers["Content-Type"].startswith("text/markdown")
    assert answer.body.decode().startswith("```text\n")


@pytest.mark.parametrize(
    "bundle_id", ["20200101-000000-1-abcd", "nonsense", "%s%n", "..%2f..%2fetc"]
)
@pytest.mark.parametrize("what", ["", "markdown", "read", "DELETE"])
async def test_an_unknown_id_is_a_sentence(server: Server, bundle_id: str, what: str) -> None:
    kwargs: dict[str, Any] = {"method": "POST", "body": ""} if what == "read" else {}
    if what == "DELETE":
        what, kwargs = "", {"method": "DELETE"}
    path = ["tfguard", "api", "crashes", bundle_id, *([what] if what else [])]
    response = await refused(server.fetch(*path, **kwargs))
    assert response.code == 404
    if bundle_id != "..%2f..%2fetc":
        assert "There is no report with the id" in json.loads(response.body)["message"]


async def test_a_report_that_is_forgotten_is_gone(server: Server, data_folder: Path) -> None:
    kept, forgotten = keep(server), keep(server, 2.0)
    answer = await server.fetch("tfguard", "api", "crashes", forgotten, method="DELETE")
    assert (answer.code, answer.body) == (204, b"")
    assert [c["id"] for c in (await server.get("crashes"))["crashes"]] == [kept]
    again = await refused(server.fetch("tfguard", "api", "crashes", forgotten, method="DELETE"))
    assert again.code == 404
    assert not [path for path in (data_folder / "bundles").rglob("*") if forgotten in str(path)]


async def test_a_damaged_report_is_a_sentence(server: Server) -> None:
    bundle_id = keep(server)
    store = server.app.web_app.settings["tfguard_service"].store
    (store.root / bundle_id / "report.json").write_text("{")
    response = await refused(server.fetch("tfguard", "api", "crashes", bundle_id))
    assert response.code == 500
    assert "damaged" in json.loads(response.body)["message"]


def routes(server: Server) -> list[tuple[str, str]]:
    """Method and path of everything the router leads to below tfguard/."""
    found = []
    for rule in rules(server.app.web_app.default_router):
        pattern = rule.matcher.regex.pattern
        if "tfguard/api" not in pattern:
            continue  # pages are walked in test_access.py
        path = re.sub(r"\(\[\^/\][^)]*\)", "20200101-000000-1-abcd", pattern).rstrip("$")
        path = path[path.index("tfguard/api") :]
        for method in ("get", "post", "put", "patch", "delete"):
            if method in vars(rule.target):
                found.append((method.upper(), path))
    ours = [path for path, *_ in HANDLERS if "/api/" in path]
    assert len(found) == len(ours) + 1  # a report is read and deleted
    return found


def rules(router: Any) -> Iterator[Any]:
    for rule in router.rules:
        if isinstance(rule.target, RuleRouter):
            yield from rules(rule.target)
        elif isinstance(rule.matcher, PathMatches):
            yield rule


async def test_the_walk_finds_every_route(server: Server) -> None:
    paths = [path.removeprefix("tfguard/api/") for _, path in routes(server)]
    bundle = "crashes/20200101-000000-1-abcd"
    kernel = "kernels/20200101-000000-1-abcd"
    assert sorted(paths) == sorted(
        [
            "status",
            "options",
            "crashes",
            bundle,
            bundle,
            f"{bundle}/markdown",
            f"{bundle}/read",
            f"{bundle}/bundle",
            f"{bundle}/bundle/preview",
            f"{kernel}/stacks",
            "stream",
        ]
    )


@pytest.mark.parametrize("headers", [{"Authorization": ""}, {"Authorization": "token wrong"}])
async def test_no_route_is_open_without_the_token(server: Server, headers: dict[str, str]) -> None:
    # The permissive default of Jupyter Server: a handler without a decorator would answer.
    assert server.app.allow_unauthenticated_access is True
    for method, path in routes(server):
        body = {} if method in ("GET", "DELETE") else {"body": ""}
        response = await refused(
            server.fetch(*path.split("/"), method=method, headers=headers, **body)
        )
        assert response.code in (401, 403), (method, path, response.code)


class Forbids(Authorizer):  # type: ignore[misc]
    """Refuses everything of tfguard's."""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        return resource != "tfguard"


class TestAuthorizer:
    @pytest.fixture
    def jp_server_config(self, jp_server_config: Config) -> Config:
        jp_server_config.ServerApp.authorizer_class = Forbids
        return jp_server_config

    async def test_no_route_is_open_to_a_user_who_may_not(self, server: Server) -> None:
        await server.fetch("api", "kernels")  # others go on
        for method, path in routes(server):
            body = {} if method in ("GET", "DELETE") else {"body": ""}
            response = await refused(server.fetch(*path.split("/"), method=method, **body))
            assert response.code == 403, (method, path, response.code)


async def test_watching_is_no_activity(server: Server) -> None:
    settings = server.app.web_app.settings
    bundle_id = keep(server)
    before = settings.get("api_last_activity")
    await server.get("status")
    await server.get("crashes")
    await server.fetch("tfguard", "api", "crashes", bundle_id, "read", method="POST", body="")
    assert settings.get("api_last_activity") == before
    store = settings["tfguard_service"].store
    assert (store.root / bundle_id / READ).exists()
