"""The cell in which a kernel died carries a mark until its report was read, and never in the notebook file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import pictures, run

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import Lab

# Dies once: afterwards the file is there.
DIES_ONCE = """import os, pathlib, signal
once = pathlib.Path("once-{name}")
if not once.exists():
    once.touch()
    os.kill(os.getpid(), signal.SIGKILL)
print("ran", "to the end")"""
MARK = ".jp-TfGuard-CellMark"


def cells_of(notebook: Path) -> Any:
    return json.loads(notebook.read_text())["cells"]


def run_and_die(page: Page) -> Locator:
    """Run all cells, see the kernel die, close JupyterLab's dialog, and wait for the mark."""
    run(page)
    dialog = page.locator(".jp-Dialog", has_text="appears to have died")
    dialog.get_by_role("button", name="Ok").click()
    mark = page.locator(MARK)
    mark.wait_for()
    return mark


def saved(page: Page) -> None:
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")


@pytest.mark.parametrize("end", ["report", "run"])
def test_the_mark_survives_a_reload_and_goes_with_the_report_or_the_next_run(
    lab: Lab, end: str
) -> None:
    path = lab.notebook(f"mark-{end}", "x = 1", DIES_ONCE.format(name=end), "y = 2")
    page = lab.open(path)
    mark = run_and_die(page)
    assert "The kernel died here, today" in mark.inner_text()
    assert "Killed" in mark.inner_text()
    cell = page.locator(".jp-Cell", has=mark)
    assert "os.kill" in cell.inner_text()
    pictures(page, "cell-mark")
    saved(page)
    text = path.read_text()
    assert "died here" not in text
    assert "TfGuard" not in text
    assert [cell["metadata"] for cell in cells_of(path)] == [{}, {}, {}]

    page.reload()
    mark.wait_for()
    assert mark.count() == 1
    if end == "report":
        mark.get_by_role("button", name="Show why").click()
        page.locator(".jp-TfGuard-Report").wait_for()
    else:
        page.locator(".jp-Cell", has_text="os.kill").locator(".jp-InputPrompt").click()
        run(page, "notebook:run-cell")
        page.locator(".jp-OutputArea-output", has_text="ran to the end").wait_for()
    mark.wait_for(state="detached")


def test_the_mark_comes_back_into_view_in_a_long_notebook(lab: Lab) -> None:
    cells = [f"# cell {number}\n{number}" for number in range(300)]
    cells[1] = DIES_ONCE.format(name="long")
    page = lab.open(lab.notebook("long", *cells))
    mark = run_and_die(page)
    # Cells out of view leave the page then, or are hidden; not every version does it by itself.
    page.evaluate(
        """() => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.notebookConfig = { ...content.notebookConfig, windowingMode: "full" };
        }"""
    )
    for _ in range(2):
        page.evaluate("window.jupyterapp.shell.currentWidget.content.scrollToItem(290)")
        page.locator(".jp-Cell", has_text="# cell 289").wait_for()
        mark.wait_for(state="hidden")
        page.evaluate("window.jupyterapp.shell.currentWidget.content.scrollToItem(0)")
        mark.wait_for()
        assert mark.count() == 1
