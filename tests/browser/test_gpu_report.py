"""Reports of deaths on a GPU, as a person reads them in JupyterLab. The driver's library is a stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import command
from tests.browser.gpus import cuda_pid_behind, pictures, run_beside
from tests.rigs.nvml.scenario import GIB, MIB, eight_gpus, holding, one_gpu

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.gpus import Start

# As TensorFlow writes it, and aborting as it does.
ABORT = """\
import ctypes, os, time
os.write(2, b"%s0000 00:00:%.6f    4711 {line}\\n" % (b"{severity}", time.time()))
ctypes.PyDLL(None).abort()
"""
NO_ROOM = "cuda_driver.cc:1011] failed to allocate 2.00GiB: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
NO_CARD = "cuda_executor.cc:77] failed to synchronize: CUDA_ERROR_UNKNOWN: unknown error"
# A death is told with the list of a moment before it.
LOOKS_MILLISECONDS = 3000


def _report(page: Page) -> str:
    """The text of the report, opened from the dialog."""
    dialog = page.locator(".jp-Dialog", has_text="appears to have died")
    dialog.wait_for(timeout=120_000)
    dialog.locator(".jp-TfGuard-Cause", has_text="GPU").wait_for(timeout=120_000)
    dialog.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    return report.inner_text()


def test_the_notebook_that_holds_the_card_is_named_in_dialog_and_report(start: Start) -> None:
    lab, cards = start(one_gpu(holders=()))
    cell = ABORT.format(severity="F", line=NO_ROOM)
    page = lab.open(lab.notebook("train", cards.hold("x"), "# the next cell is run later", cell))
    other = run_beside(lab.server, "train_b", cards.hold("y"))
    command(page, "tfguard:open-panel")
    command(page, "notebook:run-cell-and-select-next")
    panel = page.locator(".jp-TfGuard-Panel")
    holding(
        cards.scenario.cards[0],
        [(other, 13 * GIB), (cuda_pid_behind(lab.server, "train"), 600 * MIB)],
        200 * MIB,
    )
    cards.show()
    panel.get_by_text("held by train_b.ipynb").wait_for(timeout=120_000)
    page.wait_for_timeout(LOOKS_MILLISECONDS)
    command(page, "notebook:run-all-cells")
    text = _report(page)
    assert "was held by train_b.ipynb" in text
    assert "13.0 GiB of 15.0 GiB" in text
    assert "Shut down the kernel of train_b.ipynb" in text
    pictures(page, "report-held")


def test_a_card_that_fell_off_the_bus_is_the_cause_and_not_the_notebook(start: Start) -> None:
    lab, cards = start(eight_gpus(holders={}))
    cell = ABORT.format(severity="E", line=NO_CARD)
    page = lab.open(lab.notebook("lost", cards.hold("x"), "# the next cell is run later", cell))
    command(page, "tfguard:open-panel")
    command(page, "notebook:run-cell-and-select-next")
    holding(cards.scenario.cards[3], [(cuda_pid_behind(lab.server, "lost"), 39 * GIB)], 500 * MIB)
    cards.show()
    page.locator(".jp-TfGuard-Panel").get_by_text("39.0 GiB").first.wait_for(timeout=120_000)
    page.wait_for_timeout(LOOKS_MILLISECONDS)
    cards.scenario.xid(3, 79)
    cards.scenario.lose(3)
    cards.show()
    page.locator(".jp-TfGuard-Panel").get_by_text("The card is gone").wait_for(timeout=120_000)
    command(page, "notebook:run-all-cells")
    text = _report(page)
    assert "failed: the card, its memory or its link" in text
    assert "Xid 79" in text
    assert "Not the notebook" in text
    pictures(page, "report-xid")
