"""Makes the three pictures of the README, of a real crash: ``python -m tests.browser.pictures``.

A fit keeps every batch of features until its kernel reaches a memory limit. ``labextension/pictures`` then holds the panel
shortly before the limit, the dialog with the cause, and the top of the report. Takes about three minutes and needs the
right to set a memory limit (a cgroup, or systemd).
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from jupyter_tfguard.demo.limits import make_limit
from jupyter_tfguard.units import GIB
from tests.browser.conftest import Lab, command, lab_server, launch, run
from tests.browser.gpus import pid_behind

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator, Page

FOLDER = Path(__file__).parents[2] / "labextension" / "pictures"
FILE_LIMIT_BYTES = 120_000
MEMORY_LIMIT_BYTES = 3 * GIB
PANEL_WIDTH = 340
WAIT_MILLISECONDS = 300_000
DATA = """\
import numpy as np, tensorflow as tf
rng = np.random.default_rng(7)
labels = rng.integers(0, 2, 6000)
images = rng.random((6000, 64, 64, 3), dtype=np.float32)
images[labels == 1] += 0.02
"""
MODEL = """\
encoder = tf.keras.layers.Conv2D(16, 3, activation="relu")
model = tf.keras.Sequential([
    tf.keras.layers.Input((64, 64, 3)),
    encoder,
    tf.keras.layers.MaxPooling2D(4),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(32, activation="relu"),
    tf.keras.layers.Dense(2, activation="softmax"),
], name="classifier")
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
features = []
keep = tf.keras.callbacks.LambdaCallback(
    on_train_batch_end=lambda batch, logs: features.append(encoder(images[:2]).numpy())
)
save = tf.keras.callbacks.ModelCheckpoint("checkpoints/classifier.keras", verbose=0)
"""
FIT = "model.fit(images, labels, epochs=30, verbose=0, callbacks=[keep, save])"


def main() -> int:
    """Make the pictures; 1 if one is too large for the repository."""
    FOLDER.mkdir(exist_ok=True)
    limit = make_limit(MEMORY_LIMIT_BYTES)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            lab_server(Path(folder)) as server,
            sync_playwright() as playwright,
        ):
            lab = Lab(server, launch(playwright))
            page = lab.open(lab.notebook("train", DATA, MODEL, FIT))
            limit.add(pid_behind(server, "train"))
            before_the_limit(page)
            after_the_crash(page)
            lab.browser.close()
    finally:
        limit.remove()
    sizes = {path.name: path.stat().st_size for path in sorted(FOLDER.glob("*.png"))}
    print("\n".join(f"{name}: {size:,} bytes" for name, size in sizes.items()))
    return int(any(size > FILE_LIMIT_BYTES for size in sizes.values()))


def before_the_limit(page: Page) -> None:
    """Run the notebook beside a narrow panel; keep the panel when it says that the limit is near."""
    page.set_viewport_size({"width": 1360, "height": 1040})
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
    run(page)
    near = panel.get_by_text("Limit in about 20 seconds")
    near.wait_for(timeout=WAIT_MILLISECONDS)
    last = box(page.locator(".jp-TfGuard-Deaths"))
    place = box(panel)
    keep(page, "panel", place | {"height": last["y"] + last["height"] - place["y"]})


def after_the_crash(page: Page) -> None:
    """Keep the dialog and, in a window without the sidebar, the report."""
    page.set_viewport_size({"width": 1080, "height": 860})
    dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
    dialog.wait_for(timeout=WAIT_MILLISECONDS)
    dialog.locator(".jp-TfGuard-Cause").wait_for()
    command(page, "notebook:clear-all-cell-outputs")  # TensorFlow's messages around the dialog
    page.wait_for_timeout(1000)  # the dialog fades in
    keep(page, "dialog", around(dialog.locator(".jp-Dialog-content"), 14))
    dialog.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    command(page, "application:toggle-mode")
    page.wait_for_timeout(1500)  # the layout moves
    keep(page, "report", around(report, 12) | {"height": 640})


def box(found: Locator) -> FloatRect:
    """The place of an element on the page."""
    place = found.bounding_box()
    assert place is not None
    return place


def around(found: Locator, pixels: float) -> FloatRect:
    """The place of an element with a margin."""
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
