"""A kernel that hangs: the panel says so, shows its threads, and a restart leaves a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import command, pictures, run

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

STUCK = """\
import threading

first, second = threading.Lock(), threading.Lock()

def forwards():
    with first:
        barrier.wait()
        with second:
            pass

def backwards():
    with second:
        barrier.wait()
        with first:
            pass

barrier = threading.Barrier(2)
threading.Thread(target=backwards, daemon=True).start()
forwards()
"""


def test_the_panel_reports_a_hang_and_a_restart_leaves_a_report(lab: Lab) -> None:
    page = lab.open(lab.notebook("deadlock", STUCK))
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-Panel")
    panel.wait_for()
    run(page)
    notice = panel.locator(".jp-TfGuard-Hang")
    notice.wait_for()
    text = notice.inner_text()
    assert "No progress for" in text
    assert "Its main thread is waiting for a lock, without a timeout." in text
    pictures(page, "panel-hang")
    notice.locator("button").click()
    stacks = page.locator(".jp-TfGuard-Stacks")
    stacks.wait_for()
    shown = stacks.inner_text()
    assert "in forwards" in shown
    assert "in backwards" in shown
    pictures(page, "stacks")
    page.locator(".jp-Dialog .jp-mod-reject").click()
    command(page, "kernelmenu:restart")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    toast = page.locator(".Toastify__toast", has_text="deadlock.ipynb hung")
    toast.wait_for()
    toast.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    said = report.inner_text()
    assert "The kernel hung" in said
    assert "until you stopped it" in said
    assert "in forwards" in said
    pictures(page, "report-hang")
