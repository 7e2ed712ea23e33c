"""Reports as pages of the server, and as a bundle to save: what is in them, and what is not."""

from __future__ import annotations

import getpass
import html
import io
import json
import re
import socket
import zipfile
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.record.bundle import new_bundle_id
from jupyter_tfguard.report.anonymous import Identity
from tests.rigs.planted_secrets import SECRETS

from .conftest import Server, refused

NAMES = Identity("/home/ann-lee", "ann-lee", "gpu-box-7.lab.example")


@pytest.fixture(autouse=True)
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs as somebody with a name."""
    monkeypatch.setattr(Path, "home", lambda: Path(NAMES.home))
    monkeypatch.setattr(getpass, "getuser", lambda: NAMES.user)
    monkeypatch.setattr(socket, "gethostname", lambda: NAMES.host)


def keep(server: Server, **changes: Any) -> str:
    """A report of the sample, with changes, in the store."""
    bundle_id = new_bundle_id(4711, 1.8e9)
    report = json.loads((server.samples / "report.json").read_text()) | changes
    entry = {
        name: report[name]
        for name in ("crashed_at", "cause", "confidence", "short_title", "notebook_path")
    }
    bundle = {"id": bundle_id, "format": [1, 0], "kernel": {"stderr_tail": report["stderr_tail"]}}
    store = server.app.web_app.settings["tfguard_service"].store
    store.save(bundle, report | {"id": bundle_id}, entry | {"id": bundle_id})
    return bundle_id


async def page(server: Server, *path: str) -> str:
    answer = await server.fetch("tfguard", "report", *path)
    assert answer.headers["Content-Type"].startswith("text/html")
    return str(answer.body.decode())


async def exported(server: Server, bundle_id: str) -> dict[str, str]:
    answer = await server.fetch("tfguard", "api", "crashes", bundle_id, "bundle")
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


async def test_a_report_is_a_page_that_loads_and_runs_nothing(server: Server) -> None:
    bundle_id = keep(server)
    found = await page(server, bundle_id)
    assert "<h1>The kernel used all of its container" in found
    for words in ("How we know", "Evidence against it", "Not checked", "To resume from it"):
        assert words in found
    assert "<svg" in found
    assert not re.search(r"<(script|link|img|iframe|form|object)\b|\son\w+=|style=", found)
    links = re.findall(r'href="([^"]+)"', found)
    assert links
    assert all(link.startswith("/") and "/tfguard/" in link for link in links)


async def test_the_policy_allows_the_one_style_sheet_of_the_page(server: Server) -> None:
    bundle_id = keep(server)
    answer = await server.fetch("tfguard", "report", bundle_id)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert re.search(r"style-src 'sha256-[A-Za-z0-9+/=]{44}'", policy)
    assert "frame-ancestors" in policy


async def test_the_list_leads_to_each_report(server: Server) -> None:
    assert "No kernel has crashed yet." in await page(server)
    bundle_id = keep(server)
    found = await page(server)
    assert "Container memory limit" in found
    [link] = re.findall(r'href="([^"]+)"', found)
    assert link.endswith(f"/tfguard/report/{bundle_id}")
    assert "<h1>" in await page(server, bundle_id)


@pytest.mark.parametrize("bundle_id", ["20200101-000000-1-abcd", "nonsense", "<b>"])
async def test_no_such_report_is_a_page_with_a_sentence(server: Server, bundle_id: str) -> None:
    answer = await refused(server.fetch("tfguard", "report", bundle_id))
    assert answer.code == 404
    assert b"No such report" in answer.body
    assert b"<b>" not in answer.body


async def test_the_bundle_holds_the_four_files_and_opens_again(server: Server) -> None:
    bundle_id = keep(server)
    files = await exported(server, bundle_id)
    assert list(files) == ["bundle.json", "report.json", "report.md", "report.html"]
    assert json.loads(files["bundle.json"])["id"] == bundle_id
    assert json.loads(files["report.json"])["title"] in html.unescape(files["report.html"])
    assert files["report.md"].startswith("```text\n")
    assert set(re.findall('href="(.)', files["report.html"])) <= {"#"}


async def test_the_preview_is_what_the_bundle_holds(server: Server) -> None:
    bundle_id = keep(server)
    preview = await server.get("crashes", bundle_id, "bundle", "preview")
    files = await exported(server, bundle_id)
    assert {file["name"]: file["text"] for file in preview["files"]} == files
    assert [file["bytes"] for file in preview["files"]] == [len(t.encode()) for t in files.values()]
    assert preview["redacted_count"] == 0
    sample = json.loads((server.samples / "preview.json").read_text())
    assert set(preview) == set(sample)
    assert {frozenset(file) for file in preview["files"]} == {frozenset(sample["files"][0])}


async def test_secrets_and_names_do_not_leave_with_the_bundle(server: Server) -> None:
    told = [
        "reading /home/ann-lee/data/x.npy and /home/bob/y.npy",
        f"{NAMES.user}@{NAMES.host}: ready, gpu-box-7 too",
        *(secret.text for secret in SECRETS),
    ]
    path = "/home/ann-lee/runs/m.keras"
    left = {"metrics": None, "checkpoint": {"path": path, "written_at": None, "resume_code": path}}
    bundle_id = keep(server, stderr_tail=told, left=left, notebook_path="ann-lee/a.ipynb")
    files = await exported(server, bundle_id)
    for name, text in files.items():
        for word in ("ann-lee", "/home/", "bob", "gpu-box-7"):
            assert word not in text, (name, word)
        for secret in SECRETS:
            assert secret.value not in text, (name, secret.kind)
    assert "reading ~/data/x.npy and ~/y.npy" in files["report.md"].replace("\\", "")
    assert "[user]@[host]: ready, [host] too" in files["bundle.json"]
    preview = await server.get("crashes", bundle_id, "bundle", "preview")
    assert preview["redacted_count"] > 2 * len(SECRETS)


async def test_what_the_user_chooses_is_in_preview_and_bundle(server: Server) -> None:
    bundle_id = keep(server, stderr_tail=["of ACME: q9Xt2LbV7cRm4KwZp1Ns"])
    [flag] = (await server.get("crashes", bundle_id, "bundle", "preview"))["flagged"]
    body = json.dumps({"without": ["path"], "replace": ["acme", flag["text"]]})
    where = ("tfguard", "api", "crashes", bundle_id, "bundle")
    answer = await server.fetch(*where, "preview", method="POST", body=body)
    preview = json.loads(answer.body)
    assert preview["flagged"] == []
    zipped = (await server.fetch(*where, method="POST", body=body)).body
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {file["name"]: file["text"] for file in preview["files"]} == files
    for text in files.values():
        assert "[replaced]: [replaced]" in text
        assert "train.ipynb" not in text
    for bad in ("", "[]", "{", '{"without": ["all"]}', '{"replace": [3]}', "[" * 100_000):
        for route in (where, (*where, "preview")):
            assert (await refused(server.fetch(*route, method="POST", body=bad))).code == 400


async def test_a_long_text_is_cut_in_the_preview_and_whole_in_the_bundle(server: Server) -> None:
    bundle_id = keep(server, stderr_tail=["word " * 10_000] * 10)
    preview = await server.get("crashes", bundle_id, "bundle", "preview")
    files = await exported(server, bundle_id)
    cut = {file["name"]: file for file in preview["files"]}["report.json"]
    assert cut["is_cut"] is True
    assert files["report.json"].startswith(cut["text"])
    assert len(files["report.json"]) > len(cut["text"])


async def test_markdown_for_an_issue_names_nobody_as_an_export_does(server: Server) -> None:
    bundle_id = keep(server, where=f"cell [3], {NAMES.home}/train.py", title="It died for ann-lee.")
    answer = await server.fetch("tfguard", "api", "crashes", bundle_id, "markdown")
    text = answer.body.decode()
    assert "It died for [user]." in text
    assert NAMES.home not in text
    assert text == (await exported(server, bundle_id))["report.md"]
