"""Memory that rises toward a real limit: panel, status bar and one notification say when it comes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.demo.limits import LimitedGroup, NoLimitPossible, SystemdScope, make_limit
from tests.browser.conftest import command, hide, picture, theme
from tests.browser.gpus import pid_behind

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

LIMIT_BYTES = 1536 << 20
HOLD = "held = [bytearray(600 << 20)]"
RISE = """\
import time
for step in range(400):
    held.append(bytearray(5 << 20)); time.sleep(0.5)
"""
SLOW_RISE = RISE.replace("5 << 20", "2 << 20")
FREE = "held.clear()"


@pytest.fixture
def limit() -> Iterator[LimitedGroup | SystemdScope]:
    try:
        found = make_limit(LIMIT_BYTES)
    except NoLimitPossible as no:
        if os.environ.get("CI"):
            pytest.fail(str(no))
        pytest.skip(f"no memory limit can be set here: {no}")
    yield found
    found.remove()


def test_the_limit_ahead_is_told_once_and_taken_back(
    lab: Lab, limit: LimitedGroup | SystemdScope
) -> None:
    page = lab.open(lab.notebook("leak", HOLD, RISE, FREE))
    limit.add(pid_behind(lab.server, "leak"))
    command(page, "notebook:run-all-cells")
    status = page.locator(".jp-TfGuard-StatusItem")
    toast = page.locator(".Toastify__toast", has_text="leak.ipynb: memory reaches the container")
    toast.wait_for(timeout=120_000)  # with the panel closed
    assert re.search(r"limit of 1\.5 GiB in about (1 minute|\d0 seconds)", toast.inner_text())
    assert page.locator(".jp-TfGuard-Panel:visible").count() == 0
    page.wait_for_timeout(1000)  # it slides in
    picture(page, "near-limit-notification")
    assert re.search(r"▲ .* of 1\.5 GiB · limit in \d+ (s|min)", status.inner_text())
    toast.get_by_role("button", name="Show memory").click()
    notice = page.locator(".jp-TfGuard-Panel .jp-TfGuard-LimitNotice")
    notice.wait_for(timeout=120_000)
    text = notice.inner_text()
    assert re.search(r"Limit in about (1 minute|\d0 seconds) at (9|1\d) MiB/s\.", text), text
    assert "of 1.5 GiB · container limit" in page.locator(".jp-TfGuard-HostMemory").inner_text()
    page.wait_for_timeout(1500)
    picture(page, "panel-near-limit-light")
    theme(page, dark=True)
    page.wait_for_timeout(1500)
    picture(page, "panel-near-limit-dark")
    theme(page, dark=False)
    command(page, "notebook:interrupt-kernel")
    page.wait_for_timeout(1000)
    page.locator(".jp-Notebook .jp-Cell").nth(2).click()
    command(page, "notebook:run-cell")
    notice.wait_for(state="detached", timeout=120_000)
    toast.wait_for(state="detached", timeout=120_000)
    page.wait_for_function(
        "!document.querySelector('.jp-TfGuard-StatusItem').innerText.includes('▲')"
    )


def test_a_run_is_not_told_again_to_a_user_who_comes_back(
    lab: Lab, limit: LimitedGroup | SystemdScope
) -> None:
    lab.notebook("eda", "1")
    page = lab.open(lab.notebook("leak", HOLD, SLOW_RISE))
    limit.add(pid_behind(lab.server, "leak"))
    command(page, "notebook:run-all-cells")
    status = page.locator(".jp-TfGuard-StatusItem")
    toast = page.locator(".Toastify__toast", has_text="leak.ipynb: memory reaches the container")
    toast.wait_for(timeout=120_000)
    # A page behind another one: who comes back finds the warning where it was, and no second one.
    toast.evaluate("toast => { toast.dataset.first = 'yes'; }")
    hide(page, hidden=True)
    page.wait_for_timeout(35_000)
    hide(page, hidden=False)
    page.wait_for_timeout(5000)
    assert "limit in" in status.inner_text()
    assert toast.get_attribute("data-first") == "yes"
    command(page, "docmanager:open", {"path": "eda.ipynb"})
    toast.wait_for(state="detached", timeout=120_000)  # nothing is known of that run any more
    command(page, "docmanager:open", {"path": "leak.ipynb"})
    status.filter(has_text="limit in").wait_for(timeout=120_000)
    page.wait_for_timeout(5000)
    assert "limit in" in status.inner_text()
    assert toast.count() == 0
