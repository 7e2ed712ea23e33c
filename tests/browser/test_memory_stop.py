"""A cell that fills a real memory limit is stopped: panel and widget show threshold, warning and notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.demo.limits import LimitedGroup, SystemdScope
from tests.browser.conftest import command, pictures, run
from tests.browser.gpus import pid_behind
from tests.crash.conftest import needed_limit

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Lab

LIMIT_BYTES = 600 << 20
# Near the threshold of 32 MiB, but above it.
FILL = """\
import os, time
import numpy as np
from jupyter_tfguard.memory.groups import memory_groups
group, kept = memory_groups(os.getpid())[0], []
while group.used_bytes() - group.reclaimable_bytes() < 510 << 20:
    kept.append(np.ones(250_000))
"""
LOOP = """\
while True:
    kept.append(np.ones(250_000)); time.sleep(0.002)
"""


@pytest.fixture
def limit() -> Iterator[LimitedGroup | SystemdScope]:
    with needed_limit(LIMIT_BYTES) as found:
        yield found


def _run_cell(page: Page, number: int) -> None:
    page.locator(".jp-Notebook .jp-Cell").nth(number).click()
    run(page, "notebook:run-cell")


def test_a_stopped_cell_is_shown_until_it_is_dismissed(
    lab: Lab, limit: LimitedGroup | SystemdScope
) -> None:
    page = lab.open(
        lab.notebook("full", "%tfguard panel", FILL, LOOP, "kept.clear()", "%tfguard pause")
    )
    limit.add(pid_behind(lab.server, "full"))
    command(page, "tfguard:open-panel")
    panel = page.locator("#jp-tfguard-panel")
    widget = page.locator(".jp-TfGuard-Widget")
    _run_cell(page, 0)
    for place in (panel, widget):
        place.get_by_text("Stops a cell when less than 32 MiB is left").wait_for()
    _run_cell(page, 1)
    for place in (panel, widget):
        place.get_by_text("Memory is nearly full. tfguard stops the cell").wait_for()
    pictures(page, "near-stop")
    _run_cell(page, 2)
    notice = panel.locator(".jp-TfGuard-OutOfMemory")
    notice.wait_for()
    text = notice.inner_text()
    assert "Memory was nearly full in cell [3] (today " in text
    assert "Stopped this cell before the system would have ended the kernel: " in text
    assert "%tfguard pause" in text
    page.locator(".jp-OutputArea", has_text="HostMemoryLimitReached").wait_for()
    pictures(page, "stopped")
    notice.get_by_role("button", name="Dismiss").click()
    notice.wait_for(state="detached")
    _run_cell(page, 3)
    for place in (panel, widget):
        place.get_by_text("Stops a cell when less than 32 MiB is left").wait_for()
    _run_cell(page, 4)
    for place in (panel, widget):
        place.get_by_text("Stop paused (%tfguard resume)").wait_for()
