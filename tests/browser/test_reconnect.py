"""The page after the server went away: it connects anew by itself, and tells what it missed, once."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_tfguard.demo.server import DemoServer
from tests.browser.conftest import Lab, command, lab_server, picture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STALE = ".jp-TfGuard-body.jp-mod-stale"


def _toasts(page: Page, text: str) -> int:
    return page.locator(".Toastify__toast", has_text=text).count()


def test_a_server_that_was_started_again_is_found_and_its_news_are_reported_once(
    tmp_path: Path, browser: Browser
) -> None:
    with lab_server(tmp_path) as first:
        lab = Lab(first, browser)
        page = lab.open(lab.notebook("cut", "1 + 1"))
        command(page, "tfguard:open-panel")
        panel = page.locator(".jp-TfGuard-Panel")
        panel.locator(".jp-TfGuard-big").wait_for()
        first.process.kill()
        first.process.wait()
        page.wait_for_selector(STALE)
        panel.get_by_text("The server is not responding. Values are").wait_for()
        picture(page, "panel-server-away")
        second = DemoServer(first.work, lab=True, before=first)
        try:
            page.wait_for_selector(STALE, state="detached")
            assert "The server does not answer" not in panel.inner_text()
            # A kernel of the new server dies: this page hears of it.
            session = second.start_session(second.write_notebook("other"))
            pid = _pid(second, session["kernel"]["id"])
            os.kill(pid, signal.SIGKILL)
            toast = page.locator(".Toastify__toast", has_text="The kernel of other.ipynb died")
            toast.wait_for()
            page.wait_for_timeout(6000)  # the hint, and JupyterLab's events, tell the same
            assert _toasts(page, "The kernel of other.ipynb died") == 1
        finally:
            for context in list(browser.contexts):
                context.close()
            second.stop()


def _pid(server: DemoServer, kernel_id: str) -> int:
    client = server.connect(kernel_id)
    client.stop_channels()
    pid = server.kernel_pid(kernel_id)
    assert pid is not None
    return pid
