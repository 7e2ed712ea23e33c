"""The panel moves while native code holds the kernel, follows the notebook in front, and rests while nobody sees it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.conftest import command, picture, run
from tests.browser.gpus import run_beside
from tests.browser.network import Network

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Lab

HELD = "held = bytearray(200 << 20); 'held'"
# PyDLL keeps the GIL: no thread of the kernel runs, and its memory rises by 100 MiB in the middle.
NATIVE = """\
import ctypes
libc = ctypes.PyDLL(None)
libc.calloc.restype = ctypes.c_void_p
libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
libc.usleep(4_000_000); x = libc.calloc(1, 100 << 20); libc.memset(x, 1, 100 << 20); libc.usleep(6_000_000)
"""
BIG = ".jp-TfGuard-HostMemory .jp-TfGuard-big"
RESIDENT = ".jp-TfGuard-HostMemory .jp-TfGuard-resident"
# Of the text "resident 250 MiB · peak …".
RESIDENT_MEBIBYTES = f"parseInt(document.querySelector('{RESIDENT}')?.textContent.slice(9))"


def _mebibytes(page: Page) -> float:
    _, number, unit, *_ = (page.locator(RESIDENT).text_content() or "").split()
    return float(number) * {"MiB": 1, "GiB": 1024}[unit]


def _open_panel(page: Page) -> None:
    command(page, "tfguard:open-panel")
    page.locator(BIG).wait_for()


def test_numbers_go_on_while_native_code_holds_the_kernel(lab: Lab) -> None:
    found: list[Network] = []
    notebook = lab.notebook("native", HELD, NATIVE)
    page = lab.open(notebook, prepare=lambda page: found.append(Network(page)))
    _open_panel(page)
    run(page)
    page.wait_for_function(f"{RESIDENT_MEBIBYTES} >= 250")
    before = _mebibytes(page)
    below = page.locator(".jp-TfGuard-Gpu").bounding_box()
    seen = len(found[0].received)
    page.wait_for_function(f"{RESIDENT_MEBIBYTES} >= {before + 95}")
    assert page.locator(".jp-TfGuard-Gpu").bounding_box() == below  # nothing jumps
    # The cell still runs: what was seen, was seen from outside.
    assert page.locator(".jp-Notebook .jp-Cell").nth(1).inner_text().startswith("[*]")
    news = found[0].received[seen:]
    times = [m["host"]["time"] for m in news if m["type"] == "number"]
    assert len(times) >= 10
    assert len(set(times)) == len(times)


def test_the_panel_follows_the_notebook_in_front_and_reports_the_others(lab: Lab) -> None:
    page = lab.open(lab.notebook("small", "1 + 1"))
    name = "large_name_" + "of_an_experiment_" * 6 + "v2"
    run_beside(lab.server, name, HELD)
    _open_panel(page)
    others = page.locator(".jp-TfGuard-Others li")
    others.filter(has_text="large_name_").filter(has_text=re.compile(r"2\d\d MiB")).wait_for()
    assert _mebibytes(page) < 200
    panel = page.locator(".jp-TfGuard-Panel")
    sizes = "panel => [panel.scrollWidth, panel.clientWidth]"
    scroll, client = panel.evaluate(sizes)
    assert scroll == client  # a long name is cut, it widens nothing
    command(page, "docmanager:open", {"path": f"{name}.ipynb"})
    page.wait_for_function(f"{RESIDENT_MEBIBYTES} >= 200")
    others.filter(has_text="small.ipynb").wait_for()
    picture(page, "panel-two-notebooks")
    scroll, client = panel.evaluate(sizes)
    assert scroll == client
