"""Who may do what on the routes: the real router is walked, with the server's permissive default on."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import Authorizer
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.routing import PathMatches, RuleRouter
from tornado.websocket import websocket_connect
from traitlets import Set
from traitlets.config import Config

from jupyter_tfguard.record.bundle import READ, new_bundle_id

from .conftest import Server

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
READING = ("GET", "HEAD", "OPTIONS")
WRONG = {"Authorization": "token wrong"}
EVIL = "http://evil.example"


class Rights(Authorizer):  # type: ignore[misc]
    """Gives tfguard's users what the test says."""

    given: set[str] = Set().tag(config=True)

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        return resource != "tfguard" or action in self.given


@pytest.fixture
def given() -> set[str]:
    return {"read", "write"}


@pytest.fixture
def jp_server_config(jp_server_config: Config, given: set[str]) -> Config:
    jp_server_config.ServerApp.authorizer_class = Rights
    jp_server_config.Rights.given = given
    jp_server_config.ServerApp.allow_unauthenticated_access = True
    return jp_server_config


def rules(router: Any) -> Iterator[Any]:
    for rule in router.rules:
        if isinstance(rule.target, RuleRouter):
            yield from rules(rule.target)
        elif isinstance(rule.matcher, PathMatches):
            yield rule


def routes(server: Server, bundle_id: str) -> list[tuple[str, type]]:
    """Path and handler of everything that the server's router leads to below tfguard/."""
    found = []
    for rule in rules(server.app.web_app.default_router):
        pattern = rule.matcher.regex.pattern.rstrip("$")
        if "tfguard" in pattern and "static" not in pattern:
            path = pattern[pattern.index("tfguard") :]
            found.append((re.sub(r"\([^)]*\)", bundle_id, path), rule.target))
    assert len(found) >= 6
    return found


def keep(server: Server) -> str:
    bundle_id = new_bundle_id(4711, 1.0)
    report = json.loads((server.samples / "report.json").read_text())
    entry = {"id": bundle_id, "crashed_at": "2026-11-21T02:14:07.123Z", "cause": "unknown"}
    store = server.app.web_app.settings["tfguard_service"].store
    store.save({"id": bundle_id, "format": [1, 0]}, report | entry, entry)
    return bundle_id


async def answer(server: Server, path: str, method: str, headers: dict[str, str]) -> HTTPResponse:
    """What the server says, whatever it is; without the token that the fixtures would add."""
    body = {"body": b""} if method in ("POST", "PUT", "PATCH") else {}
    request = HTTPRequest(
        f"{server.app.connection_url.rstrip('/')}/{path}",
        method=method, headers=headers, follow_redirects=False, allow_nonstandard_methods=True, **body,
    )  # fmt: skip
    return await AsyncHTTPClient().fetch(request, raise_error=False)


async def socket_code(server: Server, headers: dict[str, str]) -> int:
    """101 when the stream opens, else the refusal."""
    url = server.app.connection_url.rstrip("/").replace("http", "ws", 1)
    try:
        connection = await websocket_connect(
            HTTPRequest(f"{url}/tfguard/api/stream", headers=headers)
        )
    except HTTPClientError as refused:
        return refused.code
    connection.close()
    return 101


def token(server: Server) -> dict[str, str]:
    return {"Authorization": f"token {server.app.identity_provider.token}"}


async def cookie(server: Server) -> dict[str, str]:
    """The cookies of a browser whose user has logged in, as the login page gives them."""
    page = await answer(server, f"login?token={server.app.identity_provider.token}", "GET", {})
    jar = dict(line.split(";")[0].split("=", 1) for line in page.headers.get_list("Set-Cookie"))
    page = await answer(server, "tree", "GET", {"Cookie": _joined(jar)})
    more = dict(line.split(";")[0].split("=", 1) for line in page.headers.get_list("Set-Cookie"))
    jar |= more
    assert any(name.startswith("username-") for name in jar), jar
    return {"Cookie": _joined(jar)}


def _joined(jar: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in jar.items())


async def refusals(
    server: Server, headers: dict[str, str], methods: tuple[str, ...] = METHODS
) -> dict[tuple[str, str], int]:
    """Every route and method that answered anything but a refusal."""
    bundle_id = keep(server)
    open_ones = {}
    for path, _ in routes(server, bundle_id):
        for method in methods:
            response = await answer(server, path, method, headers)
            if path.endswith("stream") and method == "GET" and response.code == 400:
                continue  # it asked for no websocket; :func:`socket_code` does
            to_login = response.code == 302 and "/login" in response.headers["Location"]
            if to_login and path.startswith("tfguard/report"):
                continue
            if response.code not in (401, 403, 405):
                open_ones[method, path] = response.code
    store = server.app.web_app.settings["tfguard_service"].store
    if "DELETE" in methods and "POST" in methods:
        assert store.ids() == [bundle_id]
        assert not (store.root / bundle_id / READ).exists()
    return open_ones


@pytest.mark.parametrize("headers", [{}, WRONG, {"Cookie": "username-x=forged"}], ids=str)
async def test_nothing_is_open_to_a_stranger(
    server: Server, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert server.app.allow_unauthenticated_access is True
    assert await refusals(server, headers) == {}
    assert await socket_code(server, headers) in (401, 403)
    traced = [r.getMessage() for r in caplog.records if r.exc_info or "Traceback" in r.getMessage()]
    assert traced == []


@pytest.mark.parametrize("given", [set()], ids=["nothing"])
async def test_nothing_is_open_to_a_user_without_rights(server: Server) -> None:
    assert await refusals(server, token(server)) == {}
    assert await socket_code(server, token(server)) == 403


@pytest.mark.parametrize("given", [{"read"}], ids=["read"])
async def test_who_may_read_reads_and_changes_nothing(server: Server) -> None:
    writing = tuple(m for m in METHODS if m not in READING)
    # The choices of an export are posted, and change nothing. Without any the answer is 400.
    answered = await refusals(server, token(server), writing)
    exports = {(method, path.partition("/bundle")[1:]) for method, path in answered}
    assert exports == {("POST", ("/bundle", "")), ("POST", ("/bundle", "/preview"))}
    assert set(answered.values()) == {400}
    bundle_id = keep(server)
    for path, handler in routes(server, bundle_id):
        if "get" in vars(handler) and not path.endswith("stream"):
            assert (await answer(server, path, "GET", token(server))).code == 200, path
    assert await socket_code(server, token(server)) == 101


@pytest.mark.parametrize("given", [{"write", "execute"}], ids=["write"])
async def test_who_may_only_write_reads_nothing(server: Server) -> None:
    assert await refusals(server, token(server), READING) == {}
    assert await socket_code(server, token(server)) == 403


@pytest.mark.parametrize(
    "told",
    [
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Referer": f"{EVIL}/page"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
async def test_another_sites_page_gets_nothing_with_the_users_cookie(
    server: Server, told: dict[str, str]
) -> None:
    logged_in = await cookie(server)
    bundle_id = keep(server)
    own = await answer(server, f"tfguard/api/crashes/{bundle_id}", "GET", logged_in)
    assert own.code == 200  # the cookie is good
    store = server.app.web_app.settings["tfguard_service"].store
    store.remove(bundle_id)
    assert await refusals(server, logged_in | told) == {}
    if "Origin" in told:
        assert await socket_code(server, logged_in | told) == 403


async def test_changes_with_a_cookie_need_the_xsrf_token(server: Server) -> None:
    logged_in = await cookie(server)
    writing = tuple(m for m in METHODS if m not in READING)
    assert await refusals(server, logged_in, writing) == {}
    bundle_id = keep(server)
    xsrf = re.search(r"_xsrf=([^;]+)", logged_in["Cookie"])
    assert xsrf is not None
    path = f"tfguard/api/crashes/{bundle_id}/read"
    with_token = logged_in | {"X-XSRFToken": xsrf[1]}
    assert (await answer(server, path, "POST", with_token)).code == 204


HOSTILE_IDS = [
    "..",
    "%2e%2e",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%00",
    "20200101-000000-1-abcd%00",
    "20200101-000000-1-abcd%2freport.json",
    "２０２００１０１-000000-1-abcd",
    "<script>alert(1)</script>",
    "x" * 5000,
]


async def test_a_hostile_id_is_not_found_and_touches_nothing(
    server: Server, data_folder: Path
) -> None:
    keep(server)
    before = sorted(str(p) for p in data_folder.rglob("*"))
    tried = (
        ("GET", ""),
        ("GET", "/markdown"),
        ("GET", "/bundle"),
        ("GET", "/bundle/preview"),
        ("POST", "/read"),
        ("DELETE", ""),
    )
    for bundle_id, (method, what) in itertools.product(HOSTILE_IDS, tried):
        path = f"tfguard/api/crashes/{bundle_id}{what}"
        # As it is, not encoded by the client.
        response = await answer(server, path, method, token(server))
        assert response.code in (400, 404, 405), (method, path, response.code)
        kind = response.headers.get("Content-Type", "")
        assert b"<script>alert" not in response.body or "json" in kind
    assert sorted(str(p) for p in data_folder.rglob("*")) == before


async def test_no_answer_is_a_page_is_guessed_to_be_one_or_stays_in_a_cache(
    server: Server,
) -> None:
    bundle_id = keep(server)
    for path, handler in routes(server, bundle_id):
        if path.endswith("stream"):
            continue
        for method in [m for m in METHODS if m.lower() in vars(handler)]:
            for there in (path, path.replace(bundle_id, "20200101-000000-1-abcd")):
                response = await answer(server, there, method, token(server))
                told = response.headers
                assert told["X-Content-Type-Options"] == "nosniff"
                assert told["Cache-Control"] == "no-store"
                assert "default-src 'none'" in told["Content-Security-Policy"]
                kind = told.get("Content-Type", "")
                if path.startswith("tfguard/report"):
                    assert told["Content-Security-Policy"].endswith("allow-downloads")
                    assert kind.startswith("text/html")
                    continue
                assert told["Content-Security-Policy"].endswith("sandbox")
                if path.endswith("bundle") and response.code == 200:
                    assert kind == "application/zip"
                    assert told["Content-Disposition"].startswith("attachment;")
                elif path.endswith("markdown") and response.code == 200:
                    assert kind.startswith("text/markdown")
                    assert told["Content-Disposition"].startswith("attachment;")
                elif response.code != 204:
                    assert kind.startswith("application/json"), (method, there, kind)
        bundle_id = keep(server)  # a route may have removed it


async def test_a_site_that_the_server_allows_may_ask_before(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(server.app.web_app.settings, "allow_origin", "https://lab.example")
    asked = {
        "Origin": "https://lab.example",
        "Access-Control-Request-Headers": "authorization",
        "Access-Control-Request-Method": "GET",
    }
    response = await answer(server, "tfguard/api/crashes", "OPTIONS", asked)
    assert response.code in (200, 204)
    assert response.headers["Access-Control-Allow-Origin"] == "https://lab.example"
    assert response.body == b""
