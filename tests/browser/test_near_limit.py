"""Memory that rises toward a real limit: panel, status bar and one notification say when it comes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.demo.limits import LimitedGroup, SystemdScope
from tests.browser.conftest import command, picture, pictures, run
from tests.browser.gpus import pid_behind
from tests.crash.conftest import needed_limit

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

LIMIT_BYTES = 1536 << 20
HOLD = "held = [bytearray(600 << 20)]"
RISE = """\
import time
for step in range(400):
    held.append(bytearray(5 << 20)); time.sleep(0.5)
"""
FREE = "held.clear()"


@pytest.fixture
def limit() -> Iterator[LimitedGroup | SystemdScope]:
    with needed_limit(LIMIT_BYTES) as found:
        yield found


def test_the_limit_ahead_is_reported_once_and_taken_back(
    lab: Lab, limit: LimitedGroup | SystemdScope
) -> None:
    page = lab.open(lab.notebook("leak", HOLD, RISE, FREE))
    limit.add(pid_behind(lab.server, "leak"))
    run(page)
    status = page.locator(".jp-TfGuard-StatusItem")
    toast = page.locator(".Toastify__toast", has_text="leak.ipynb: memory will soon reach")
    toast.wait_for()  # with the panel closed
    assert "the container limit of 1.50 GiB." in toast.inner_text()
    assert page.locator(".jp-TfGuard-Panel:visible").count() == 0
    picture(page, "near-limit-notification", 1000)  # it slides in
    assert re.search(r"▲ .* of 1\.50 GiB · limit in \d+ (s|min)", status.inner_text())
    toast.get_by_role("button", name="Show memory").click()
    notice = page.locator(".jp-TfGuard-Panel .jp-TfGuard-LimitNotice")
    notice.wait_for()
    text = notice.inner_text()
    assert re.search(r"Limit in about (1 minute|\d0 seconds) at (9|1\d) MiB/s\.", text), text
    memory = page.locator(".jp-TfGuard-HostMemory").inner_text()
    assert "of 1.50 GiB\n" in memory
    assert "container limit · " in memory
    pictures(page, "panel-near-limit")
    command(page, "notebook:interrupt-kernel")
    page.wait_for_timeout(1000)
    page.locator(".jp-Notebook .jp-Cell").nth(2).click()
    run(page, "notebook:run-cell")
    notice.wait_for(state="hidden")
    toast.wait_for(state="detached")
    page.wait_for_function(
        "!document.querySelector('.jp-TfGuard-StatusItem').innerText.includes('▲')"
    )
