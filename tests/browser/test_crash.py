"""After a death: the cause inside JupyterLab's own dialog, a notification, the report, the list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.conftest import command, picture, pictures, run

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Lab

KILL = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
SEGFAULT = "import ctypes\n\ndef poke(address):\n    return ctypes.string_at(address)\n\npoke(0)"


def dialog_of(page: Page) -> str:
    dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
    dialog.wait_for()
    return ".jp-Dialog"


def test_kill_9_is_explained_in_the_dialog_and_the_report_opens_from_it(lab: Lab) -> None:
    page = lab.open(lab.notebook("killed", KILL))
    run(page)
    dialog = page.locator(dialog_of(page))
    line = dialog.locator(".jp-TfGuard-Cause")
    line.get_by_text("killed with SIGKILL").wait_for()
    text = dialog.inner_text().lower()
    assert "out of memory" not in text
    pictures(page, "dialog")
    assert page.locator(".Toastify__toast", has_text="died").count() == 0
    dialog.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    assert "killed with SIGKILL" in report.inner_text()
    assert "killed.ipynb" in report.inner_text()
    assert "How we know".lower() in report.inner_text().lower()
    pictures(page, "report-kill")


def test_the_notification_opens_the_report_and_the_list_keeps_it(lab: Lab) -> None:
    page = lab.open()
    # Its notebook is not open here, so JupyterLab shows no dialog.
    session = lab.server.start_session(lab.notebook("segfault"))
    page.evaluate(
        """([id, code]) => {
            const { kernels } = window.jupyterapp.serviceManager;
            kernels.connectTo({ model: { id, name: "python3" } }).requestExecute({ code });
        }""",
        [session["kernel"]["id"], SEGFAULT],
    )
    toast = page.locator(".Toastify__toast", has_text="egmentation fault")
    toast.wait_for()
    assert "segfault.ipynb" in toast.inner_text()
    picture(page, "notification", 800)
    toast.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    assert "string_at" in report.inner_text()
    command(page, "tfguard:open-panel")
    deaths = page.locator(".jp-TfGuard-Crashes")
    deaths.wait_for()
    assert "egmentation fault" in deaths.inner_text()
    picture(page, "report-segfault")
