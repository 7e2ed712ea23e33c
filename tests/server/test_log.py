"""Nothing that a notebook, a kernel or an exception says makes a line of its own in the server's log."""

from __future__ import annotations

import json
import logging
import os
import signal
import unicodedata
from pathlib import Path

import pytest

from jupyter_tfguard.server.notify import plain
from jupyter_tfguard.server.problems import note_start_failure
from tests.rigs.hostile import hostile_texts
from tests.rigs.waiting import wait_until_async

from .conftest import Server

BAD = "e\x1b[31mvil\n[C 2026-11-21 02:14:07 ServerApp] forged\r\u2028\u202e.ipynb"


def lines_of_ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if "tfguard: " in r.getMessage()]


@pytest.mark.parametrize("full", [False, True], ids=["kept", "not kept"])
async def test_a_death_is_one_line_whatever_the_path_and_the_failure_say(
    server: Server,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    data_folder: Path,
    full: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    body = {"path": BAD, "type": "notebook", "name": BAD, "kernel": {"name": "python3"}}
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    kernel_id = json.loads(answer.body)["kernel"]["id"]
    await server.wait_ready(kernel_id)
    store = server.app.web_app.settings["tfguard_service"].store
    if full:

        def refuse(*_: object) -> None:
            raise OSError(28, BAD)

        monkeypatch.setattr(store, "save", refuse)
    os.kill(await server.pid(kernel_id), signal.SIGKILL)
    await wait_until_async(lambda: lines_of_ours(caplog), "a line in the log")
    [line] = lines_of_ours(caplog)
    assert line.isprintable()
    assert ("could not be written" in line) is full
    assert "\\n[C" in line or not full


@pytest.mark.parametrize("bundle_id", ["%0a%1b[31mforged", "%e2%80%ae", "a%0d%0ab"])
async def test_a_request_is_logged_without_what_it_smuggles(
    server: Server, caplog: pytest.LogCaptureFixture, bundle_id: str
) -> None:
    caplog.set_level(logging.DEBUG)
    path = f"tfguard/api/crashes/{bundle_id}"
    answer = await server.fetch(*path.split("/"), raise_error=False)
    assert answer.code == 404
    assert any("crashes/" in r.getMessage() for r in caplog.records)
    for record in caplog.records:
        if "crashes/" in record.getMessage() or "wrote error" in record.getMessage():
            assert record.getMessage().isprintable()


def test_no_hostile_text_leaves_its_line(data_folder: Path) -> None:
    for hostile in hostile_texts(5000, seed=4):
        found = plain(hostile.text)
        assert found.isprintable(), hostile
        assert len(found) <= 300
        told = note_start_failure(ValueError(hostile.text))
        assert told.isprintable()
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in told)
