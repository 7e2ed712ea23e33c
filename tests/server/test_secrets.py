"""What must not be kept is nowhere: not in a bundle, a report, the log, an event or what is noted of our own failures."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.places import user_settings_file
from jupyter_tfguard.report import text
from jupyter_tfguard.server.problems import note_start_failure
from tests.rigs.planted_secrets import SECRETS
from tests.rigs.waiting import wait_until_async

from .conftest import Server

CELL = """\
# {text}
import os
value = {text!r}
os.write(2, ({text!r} + "\\n").encode())
"""
LAST = """\
import os, signal, sys
from jupyter_tfguard.shield import note_problem
sys.argv += {texts!r}
os.environ["LATER"] = {texts!r}[0]
for text in {texts!r}:
    try:
        raise ValueError(text)
    except ValueError as bad:
        note_problem("a part of " + text, bad, fix="without " + text)
os.kill(os.getpid(), signal.SIGKILL)
"""
PATH = "runs/api_key=k3y0fthepath/https:/ann:pathpw99@x/token=t0k3n1npath.ipynb"
IN_PATH = ("k3y0fthepath", "pathpw99", "t0k3n1npath")


def files(folder: Path) -> Iterator[tuple[str, str]]:
    """Path and text of each; one that is removed meanwhile is left out."""
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            with contextlib.suppress(FileNotFoundError):
                yield str(path), path.read_bytes().decode("utf-8", "replace")


async def start(server: Server, path: str) -> str:
    """A kernel of a notebook with this path."""
    body = {"path": path, "type": "notebook", "name": "", "kernel": {"name": "python3"}}
    answer = await server.fetch("api", "sessions", method="POST", body=json.dumps(body))
    kernel_id: str = json.loads(answer.body)["kernel"]["id"]
    return kernel_id


async def test_none_of_fifty_kinds_of_secrets_is_kept_or_reported(
    server: Server,
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    assert len(SECRETS) >= 50
    for number, secret in enumerate(SECRETS):
        # In the environment under names that say nothing: values are not looked at, so no form need be known.
        monkeypatch.setenv(f"SETTING_{number}", secret.value)
    kernel_id = await start(server, PATH)
    await server.wait_ready(kernel_id)
    for secret in SECRETS:
        await server.execute(kernel_id, CELL.format(text=secret.text.replace("\n", "\n# ")))
    await server.execute(kernel_id, LAST.format(texts=[s.text for s in SECRETS]))
    [entry] = await server.crashes(1)
    await wait_until_async(lambda: server.events, "the event, which follows the line in the log")
    report = await server.get("crashes", entry["id"])
    markdown = await server.fetch("tfguard", "api", "crashes", entry["id"], "markdown")
    status = await server.get("status")
    assert len(status["problems"]) > 10
    told: dict[str, Any] = dict(files(data_folder))
    told |= {
        "entry": json.dumps(entry),
        "report": json.dumps(report),
        "markdown": markdown.body.decode(),
        "text": text.render(report),
        "status": json.dumps(status["problems"]),
        "events": json.dumps(server.events),
        "log": "\n".join(r.getMessage() for r in caplog.records if "tfguard" in r.getMessage()),
        "start failure": "\n".join(note_start_failure(ValueError(s.text)) for s in SECRETS),
    }
    kept = told[next(name for name in told if name.endswith("bundle.json"))]
    assert kept.count("[redacted]") > len(SECRETS)  # the words around them are there
    assert "died" in told["log"]
    assert server.events
    values = [(s.kind, s.value) for s in SECRETS] + [("path", value) for value in IN_PATH]
    found = [
        (kind, where)
        for kind, value in values
        for where, content in told.items()
        if value in content
    ]
    assert not found, "\n".join(map(str, found))


MARKED = """\
# a-comment-of-the-cell
def name_of_a_function():
    held_by_a_name = "a-text-of-the-cell"
    import ctypes
    {last}

try:
    raise ValueError("an-exception-of-the-cell")
except ValueError:
    pass
name_of_a_function()
"""


@pytest.mark.parametrize("last", ["ctypes.string_at(0)", "while True: pass"], ids=["dead", "alive"])
async def test_without_cell_text_none_of_it_is_anywhere(
    server: Server, data_folder: Path, last: str
) -> None:
    settings = user_settings_file()
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"TfGuard": {"record_cell_text": false}}')
    kernel_id = await server.start_kernel()
    await server.execute(kernel_id, MARKED.format(last=last), wait=last.startswith("ctypes"))
    if last.startswith("ctypes"):
        await server.crashes(1)
    everywhere = dict(files(data_folder))
    assert any(name.endswith(("bundle.json", "header.json")) for name in everywhere)
    words = ("a-comment-of", "a-text-of", "an-exception-of", "held_by_a_name", "string_at(0)")
    found = [(w, name) for w in words for name, content in everywhere.items() if w in content]
    assert not found, "\n".join(map(str, found))
    # What remains, as the option says: names of functions in the stack of a crash.
    if last.startswith("ctypes"):
        assert any("name_of_a_function" in content for content in everywhere.values())
