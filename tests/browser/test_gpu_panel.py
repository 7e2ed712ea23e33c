"""The panel with a card that two notebooks share.

NVIDIA's library is a stand-in (`tests/rigs/nvml`); all above it is real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import command, pictures, run
from tests.browser.gpus import cuda_pid_behind, run_beside
from tests.rigs.nvml.scenario import GIB, MIB, holding, one_gpu

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.gpus import Start

FULL = """\
import os, tensorflow as tf
os.write(2, b"2026-11-22 10:00:00.000000: W external/local_xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) "
    b"ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)requested by op Mul\\n")
raise tf.errors.ResourceExhaustedError(
    None, None, "OOM when allocating tensor with shape[64,8388608] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Mul]")
"""


def _panel(page: Page) -> Locator:
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-Panel")
    panel.wait_for()
    return panel


def _wait_for(page: Page, *words: str) -> str:
    """The panel's text, once it has all these words."""
    try:
        page.wait_for_function(
            """words => {
                const text = document.querySelector('.jp-TfGuard-Panel')?.innerText ?? '';
                return words.every(word => text.replace(/\\s+/g, ' ').includes(word));
            }""",
            arg=list(words),
        )
    except Exception as late:
        raise AssertionError(f"{words} not in: {_text(page)}") from late
    return _text(page)


def _text(page: Page) -> str:
    return " ".join(page.locator(".jp-TfGuard-Panel").inner_text().split())


def test_a_card_that_two_notebooks_share_shows_who_holds_what(start: Start) -> None:
    lab, cards = start(one_gpu(holders=()))
    page = lab.open(lab.notebook("train", cards.hold("x"), FULL))
    panel = _panel(page)
    _wait_for(page, "GPU 0", "of 15.0 GiB")
    assert "this kernel" not in panel.locator(".jp-TfGuard-Gpu").inner_text()
    other = run_beside(lab.server, "other", cards.hold("y"))
    run(page)
    mine = cuda_pid_behind(lab.server, "train")
    holding(cards.scenario.cards[0], [(mine, 7 * GIB), (other, 5 * GIB)], 200 * MIB)
    cards.show()
    text = _wait_for(page, "this kernel 7.00 GiB", "held by other.ipynb 5.00 GiB")
    assert "in use 12.2 of 15.0 GiB" in text
    assert "driver, display, hidden 200 MiB" in text
    assert "71 °C · 66 of 70 W · 83 % busy" in text
    text = _wait_for(page, "The GPU ran out of memory in cell [2]", "CELLS BY MEMORY")
    assert "What to change: " in text
    assert "GPU 5.00 GiB" in text  # beside other.ipynb among the other kernels
    assert "[1] import ctypes" in text
    page.set_viewport_size({"width": 1440, "height": 1250})  # the whole panel
    pictures(page, "gpu-one")
    panel.locator(".jp-TfGuard-OutOfMemory button").click()
    panel.locator(".jp-TfGuard-OutOfMemory").wait_for(state="detached")
    panel.get_by_role("button", name="held by other.ipynb").click()
    page.locator(".lm-TabBar-tab.lm-mod-current", has_text="other.ipynb").wait_for()
    # The same card from the other notebook's side.
    _wait_for(page, "this kernel 5.00 GiB", "held by train.ipynb 7.00 GiB")
