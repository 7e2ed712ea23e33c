"""The REST routes: what they answer, and to whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyter_tfguard.record.bundle import READ, new_bundle_id
from tests.rigs.schemas import matches

from .conftest import Server, refused

ENTRY = {
    "kernel_id": "k",
    "pid": 4711,
    "cause": "cgroup_oom",
    "confidence": "certain",
    "title": "The kernel reached the memory limit of its container",
    "crashed_at": "2026-11-21T02:14:07.123Z",
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
    answer = matches("options", await server.get("options"))
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


async def test_an_unknown_id_is_a_sentence(server: Server) -> None:
    path = ("tfguard", "api", "crashes", "20200101-000000-1-abcd")
    asked: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        ((), {}),
        (("markdown",), {}),
        (("read",), {"method": "POST", "body": ""}),
        ((), {"method": "DELETE"}),
    ]
    for what, kwargs in asked:
        response = await refused(server.fetch(*path, *what, **kwargs))
        assert response.code == 404
        assert "No report has the id" in json.loads(response.body)["message"]


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
