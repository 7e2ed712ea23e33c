"""Notebook 7: the same panel, dialog and mark; a report is a page of the server, as there is no second main area."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.demo.server import DemoServer
from tests.browser.conftest import command, lab_server, patient, picture, run
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("notebook", reason="Notebook 7 is not installed")

KILL = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
FIT = """import time
import numpy as np
held = np.ones(20_000_000)
time.sleep(600)"""


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    with lab_server(tmp_path_factory.mktemp("notebook"), program="notebook") as found:
        yield found


@pytest.fixture
def open_page(classic: DemoServer, browser: Browser) -> Iterator[Page]:
    """A page with a context of its own; the kernels are ended afterwards."""
    page = patient(browser.new_context(viewport={"width": 1440, "height": 900}).new_page())
    yield page
    page.context.close()
    for session in classic.get("api/sessions"):
        classic.end_session(session)


def visit(page: Page, server: DemoServer, notebook: Path) -> None:
    """Open a notebook, and wait for its idle kernel."""
    page.goto(f"{server.url}notebooks/{notebook.name}?token={server.token}")
    page.wait_for_function("window.jupyterapp !== undefined")
    page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").wait_for()
    page.wait_for_timeout(1500)


def listen(sent: list[str], text: str | bytes) -> None:
    """Keep what the panel says to its own stream."""
    if isinstance(text, str) and '"type":"watch"' in text:
        sent.append(text)


def detail(watch: str) -> str:
    return str(json.loads(watch)["detail"])


def test_the_panel_opens_at_the_right_and_moves_while_a_cell_runs(
    classic: DemoServer, open_page: Page
) -> None:
    page = open_page
    sent: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda text: listen(sent, text)))
    visit(page, classic, classic.write_notebook("busy", [FIT]))
    # No status bar here, and the panel is closed: only the warning near the limit listens.
    wait_until(lambda: page.wait_for_timeout(100) or sent, "the page to say what it shows")
    assert {detail(text) for text in sent} == {"status"}
    run(page)
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-Panel")
    panel.wait_for()
    panel.get_by_text("busy.ipynb").wait_for()
    page.locator(".jp-TfGuard-big", has_text="GiB").first.wait_for()
    page.wait_for_function(
        "parseFloat(document.querySelector('.jp-TfGuard-resident').textContent.slice(9)) > 150"
    )
    picture(page, "notebook7-panel", 3000)
    assert page.locator(".jp-TfGuard-StatusItem").count() == 0
    assert detail(sent[-1]) == "panel"


def test_a_death_opens_its_report_as_a_page_of_the_server(
    classic: DemoServer, open_page: Page
) -> None:
    page = open_page
    visit(page, classic, classic.write_notebook("killed", [KILL]))
    run(page)
    dialog = page.locator(".jp-Dialog", has_text="appears to have died")
    dialog.locator(".jp-TfGuard-Cause").get_by_text("killed with SIGKILL").wait_for()
    picture(page, "notebook7-dialog", 500)
    with page.context.expect_page() as opened:
        dialog.get_by_role("button", name="Show why").click()
    report = opened.value
    article = report.locator("article")
    article.get_by_role("heading", name="killed with SIGKILL").wait_for()
    for words in ("killed.ipynb", "signal.SIGKILL", "How we know".upper()):
        assert words in article.inner_text()
    picture(report, "notebook7-report")
    (entry,) = classic.get("tfguard/api/crashes")["crashes"]
    assert report.url == f"{classic.url}tfguard/report/{entry['id']}"
    assert not entry["unread"]
    assert page.locator(".jp-TfGuard-Report").count() == 0
    report.close()
