"""Makes the three pictures of the README, of a recorded death: ``python -m tests.browser.pictures``.

They lie in ``labextension/pictures``: the panel while a fit nears its limit, the dialog with the cause, the top of the report.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from jupyter_tfguard.record.bundle import BundleStore
from jupyter_tfguard.replay.recorded import read_recorded
from jupyter_tfguard.replay.run import Replay, playing
from jupyter_tfguard.replay.tape import tape_of
from tests.browser.conftest import command, launch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Locator, Page

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "fixtures" / "replay" / "memory-limit.zip"
FOLDER = ROOT / "labextension" / "pictures"
LIMIT_BYTES = 120_000
PANEL_WIDTH = 340
# The limit is near then, and not reached.
NEAR_SECONDS = 76.0
LOOK_SECONDS = 8.0


def main() -> int:
    """Make them; 1 when one is too large to be kept."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as empty:
        tape = tape_of(read_recorded(str(RECORDED), BundleStore(Path(empty))))
    with sync_playwright() as playwright:
        browser = launch(playwright)
        with playing(tape, before_seconds=NEAR_SECONDS + LOOK_SECONDS) as (_, replay):
            page = look(browser, replay, width=1360, height=1040, scale=1.5)
            page.wait_for_timeout(LOOK_SECONDS * 1000)
            place, last = (
                box(page.locator(".jp-TfGuard-body")),
                box(page.locator(".jp-TfGuard-Deaths")),
            )
            keep(page, "panel", place | {"height": last["y"] + last["height"] - place["y"]})
            page.context.close()
        with playing(tape, before_seconds=4) as (_, replay):
            page = look(browser, replay, width=1080, height=860, scale=1)
            death(page)
        browser.close()
    sizes = {path.name: path.stat().st_size for path in sorted(FOLDER.glob("*.png"))}
    print("\n".join(f"{name}: {size:,} bytes" for name, size in sizes.items()))
    return int(any(size > LIMIT_BYTES for size in sizes.values()))


def look(browser: Browser, replay: Replay, *, width: int, height: int, scale: float) -> Page:
    """The notebook, with the panel beside it as wide as people have it."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=scale
    )
    page = context.new_page()
    page.goto(f"{replay.address}&reset")
    page.wait_for_function("window.jupyterapp !== undefined", timeout=120_000)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_selector(".jp-StatusBar-Widget >> text=/\\| Idle/")
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-body")
    panel.wait_for()
    place = box(panel)
    left, middle = place["x"] - 2, place["y"] + place["height"] / 2
    page.mouse.move(left, middle)
    page.mouse.down()
    page.mouse.move(left + place["width"] - PANEL_WIDTH, middle, steps=4)
    page.mouse.up()
    return page


def death(page: Page) -> None:
    """Dialog and report, once the death has come."""
    dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
    dialog.wait_for(timeout=120_000)
    dialog.locator(".jp-TfGuard-Cause").wait_for()
    page.wait_for_timeout(1000)
    keep(page, "dialog", around(dialog.locator(".jp-Dialog-content"), 14))
    dialog.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    # Beside the notebook it would be narrow; people make it as wide as they like.
    page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    command(page, "application:toggle-mode")
    page.wait_for_timeout(1500)
    keep(page, "report", around(report, 12) | {"height": 640})


def box(found: Locator) -> FloatRect:
    """Where it stands on the page."""
    place = found.bounding_box()
    assert place is not None
    return place


def around(found: Locator, pixels: float) -> FloatRect:
    """The place of something with so much around it."""
    place = box(found)
    return {
        "x": place["x"] - pixels,
        "y": place["y"] - pixels,
        "width": place["width"] + 2 * pixels,
        "height": place["height"] + 2 * pixels,
    }


def keep(page: Page, name: str, clip: FloatRect) -> None:
    """Write one picture."""
    page.screenshot(path=FOLDER / f"{name}.png", clip=clip)


if __name__ == "__main__":
    sys.exit(main())
