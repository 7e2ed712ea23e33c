"""The panel with GPUs: one card that two notebooks share, eight cards, a card in MIG instances, a card that goes.

NVIDIA's library is a stand-in (`tests/rigs/nvml`); all above it is real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import command
from tests.browser.gpus import cuda_pid_behind, pictures, run_beside
from tests.rigs.nvml.scenario import GIB, MIB, eight_gpus, holding, mig, one_gpu

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
# TensorFlow as it is once it has made a GPU: a build without CUDA cannot, so its list of cards, its device, its allocator's
# answer and its log line are put in its place.
WORK = """\
import os, tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context
real = pywrap_tfe.TF_ListPhysicalDevices
pywrap_tfe.TF_ListPhysicalDevices = lambda: [*real(), b"/physical_device:GPU:0"]
context.pywrap_tfe.TFE_GetMemoryInfo = lambda handle, device: {"current": 19 << 26, "peak": 24 << 26}
one = tf.constant(1.0)
os.write(2, b"I0000 00:00:1762253213.310854  475186 gpu_device.cc:2020] Created device /job:localhost/replica:0/task:0/"
    b"device:GPU:0 with 13942 MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:1e.0, compute capability: 7.5\\n")
made = context.context()  # a new list, as TensorFlow makes one each time that it makes devices
made._logical_devices = [*made._logical_devices, context.LogicalDevice("/device:GPU:0", "GPU")]
"""


def _panel(page: Page) -> Locator:
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-Panel")
    panel.wait_for()
    return panel


def _wait_for(page: Page, *words: str, seconds: float = 30) -> str:
    """The panel's text, once it has all these words."""
    try:
        page.wait_for_function(
            """words => {
                const text = document.querySelector('.jp-TfGuard-Panel')?.innerText ?? '';
                return words.every(word => text.replace(/\\s+/g, ' ').includes(word));
            }""",
            arg=list(words),
            timeout=seconds * 1000,
        )
    except Exception as late:
        raise AssertionError(f"{words} not in: {_text(page)}") from late
    return _text(page)


def _text(page: Page) -> str:
    return " ".join(page.locator(".jp-TfGuard-Panel").inner_text().split())


def test_a_card_that_two_notebooks_share_tells_who_holds_what(start: Start) -> None:
    lab, cards = start(one_gpu(holders=()))
    page = lab.open(lab.notebook("train", cards.hold("x"), FULL))
    panel = _panel(page)
    assert "this kernel" not in _wait_for(page, "GPU 0", "of 15.0 GiB")
    other = run_beside(lab.server, "other", cards.hold("y"))
    command(page, "notebook:run-all-cells")
    mine = cuda_pid_behind(lab.server, "train")
    holding(cards.scenario.cards[0], [(mine, 7 * GIB), (other, 5 * GIB)], 200 * MIB)
    cards.show()
    text = _wait_for(page, "this kernel 7.0 GiB", "held by other.ipynb 5.0 GiB", seconds=60)
    assert "in use 12.2 of 15.0 GiB" in text
    assert "driver, display, not seen 200 MiB" in text
    assert "71 °C · 66 of 70 W · 83 % busy" in text
    text = _wait_for(page, "The GPU was full in cell [2]", "CELLS BY MEMORY", seconds=60)
    assert "What to change: " in text
    assert "GPU 5.0 GiB" in text  # beside other.ipynb among the other kernels
    assert "[1] import ctypes" in text
    pictures(page, "one")
    panel.locator(".jp-TfGuard-GpuOom button").click()
    panel.locator(".jp-TfGuard-GpuOom").wait_for(state="detached")
    panel.get_by_role("button", name="held by other.ipynb").click()
    page.locator(".lm-TabBar-tab.lm-mod-current", has_text="other.ipynb").wait_for(timeout=120_000)
    # The same card from the other notebook's side.
    _wait_for(page, "this kernel 5.0 GiB", "held by train.ipynb 7.0 GiB")


def test_growth_that_works_and_tensorflows_own_view_are_told(start: Start) -> None:
    lab, cards = start(one_gpu(holders=()))
    page = lab.open(lab.notebook("grow", cards.hold("x"), WORK, "tf.constant(2.0)"))
    _panel(page)
    command(page, "notebook:run-all-cells")
    _wait_for(page, "memory growth on", seconds=90)
    mine = cuda_pid_behind(lab.server, "grow")
    holding(cards.scenario.cards[0], [(mine, 2662 * MIB)], 200 * MIB)
    cards.show()
    text = _wait_for(page, "seen working: 2.60 GiB of 15.0 GiB", seconds=60)
    assert "this kernel 2.6 GiB (1.2 in tensors)" in text
    pictures(page, "grow")


def test_eight_cards_stay_calm_and_one_that_is_lost_comes_to_the_front(start: Start) -> None:
    lab, cards = start(eight_gpus(holders={}))
    page = lab.open(lab.notebook("train", cards.hold("x")))
    panel = _panel(page)
    command(page, "notebook:run-all-cells")
    other = run_beside(lab.server, "train_b", cards.hold("y"))
    mine = cuda_pid_behind(lab.server, "train")
    holding(cards.scenario.cards[2], [(mine, 39 * GIB)], 500 * MIB)
    holding(cards.scenario.cards[5], [(other, 71 * GIB)], 500 * MIB)
    cards.show()
    _wait_for(page, "this kernel 39.0 GiB", "GPU 5 · train_b.ipynb 71.5 GiB", seconds=60)
    assert panel.locator(".jp-TfGuard-Folded").count() == 7
    assert panel.locator(".jp-TfGuard-Gpu > h3", has_text="GPU 2").count() == 1
    line = panel.locator(".jp-TfGuard-Folded", has_text="GPU 5")
    line.locator("summary").focus()
    page.keyboard.press("Enter")
    line.get_by_text("held by train_b.ipynb").wait_for()
    page.wait_for_timeout(2500)  # new values must not fold it again
    assert line.get_by_text("held by train_b.ipynb").is_visible()
    pictures(page, "eight")
    cards.scenario.xid(7, 79)
    cards.scenario.lose(7)
    cards.show()
    lost = panel.locator(".jp-TfGuard-Gpu", has_text="GPU 7").locator(".jp-mod-error")
    lost.filter(has_text="gone").wait_for(timeout=120_000)
    lost.filter(has_text="Xid 79").wait_for(timeout=120_000)
    assert panel.locator(".jp-TfGuard-Folded").count() == 6
    assert "this kernel 39.0 GiB" in _text(page)
    pictures(page, "eight-lost")


def test_mig_instances_are_cards_of_their_own(start: Start) -> None:
    lab, cards = start(mig(holders={}))
    page = lab.open(lab.notebook("train", cards.hold("x")))
    panel = _panel(page)
    command(page, "notebook:run-all-cells")
    other = run_beside(lab.server, "other", cards.hold("y"))
    mine = cuda_pid_behind(lab.server, "train")
    parts = cards.scenario.cards[0].instances
    holding(parts[0], [(mine, 12 * GIB)], 13 * MIB)
    holding(parts[1], [(other, 6 * GIB)], 13 * MIB)
    cards.show()
    text = _wait_for(page, "this kernel 12.0 GiB", "GPU 0 · MIG 1 · other.ipynb", seconds=60)
    assert "split into 3 MIG instances" in text
    assert "3g.20gb, 19.8 GiB" in text
    assert panel.locator(".jp-TfGuard-Gpu > h3", has_text="GPU 0 · MIG 0").count() == 1
    pictures(page, "mig")
