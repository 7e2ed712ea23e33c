"""A replayed death in JupyterLab: the numbers of the recording, then dialog, notice and report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.replay.recorded import read_recorded
from jupyter_tfguard.replay.run import playing
from jupyter_tfguard.replay.tape import Tape, tape_of
from tests.browser.conftest import command, picture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RECORDED = Path(__file__).parents[1] / "fixtures" / "replay" / "memory-limit.zip"


@pytest.fixture
def tape(tmp_path: Path) -> Tape:
    return tape_of(read_recorded(str(RECORDED), BundleStore(tmp_path)))


def look(browser: Browser, address: str) -> Page:
    """The notebook with the panel beside it."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}&reset")
    page.wait_for_function("window.jupyterapp !== undefined", timeout=120_000)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    command(page, "tfguard:open-panel")
    return page


def test_the_panel_shows_recorded_numbers_and_the_death_brings_its_report(
    browser: Browser, tape: Tape
) -> None:
    with playing(tape, before_seconds=30, speed=2) as (_, replay):
        page = look(browser, replay.address)
        panel = page.locator(".jp-TfGuard-body")
        panel.get_by_text("replay, not live").wait_for()
        panel.get_by_text("fit · classifier").wait_for()
        text = panel.inner_text()
        assert "of 3.0 GiB · container limit" in text
        assert re.search(r"\b[23]\.\d GiB", text)
        assert re.search(r"epoch \d+ of 30", text)
        picture(page, "replay-panel")
        dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
        dialog.wait_for(timeout=120_000)
        cause = dialog.locator(".jp-TfGuard-Cause")
        cause.get_by_text("all of its container's memory").wait_for()
        picture(page, "replay-dialog")
        dialog.get_by_role("button", name="Show why").click()
        report = page.locator(".jp-TfGuard-Report")
        report.get_by_text("counted 1 OOM kill").first.wait_for()
        assert "train.ipynb" in report.inner_text()
        panel.get_by_text("The replay is over.").wait_for()
        picture(page, "replay-report")
        page.context.close()
