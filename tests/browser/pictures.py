"""Makes the pictures of the README from a real crash: ``python -m tests.browser.pictures``.

A fit keeps features until its kernel reaches a memory limit. ``labextension/pictures`` then holds the panel shortly before
the limit, the dialog with the cause, the top of the report, and all of it as an animation. Takes about three minutes. Needs
the right to set a memory limit (a cgroup, or systemd) and Pillow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from jupyter_tfguard.demo.limits import make_limit
from jupyter_tfguard.units import GIB
from tests.browser.animation import Animation
from tests.browser.conftest import Lab, command, lab_server, launch, run
from tests.browser.gpus import pid_behind
from tests.conftest import write_options

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator, Page

FOLDER = Path(__file__).parents[2] / "labextension" / "pictures"
FILE_LIMIT_BYTES, ANIMATION_LIMIT_BYTES = 120_000, 1_500_000
MEMORY_LIMIT_BYTES = 3 * GIB
PANEL_WIDTH = 340
FRAME_MILLISECONDS = 700
WAIT_MILLISECONDS = 300_000
DATA = """\
import time, numpy as np, tensorflow as tf
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
features, last = [], 0.0
def keep_features(batch, logs):  # every tenth of a second, so that the speed of the machine matters little
    global last
    if time.monotonic() - last > 0.1:
        last = time.monotonic()
        features.append(encoder(images[:16]).numpy())
keep = tf.keras.callbacks.LambdaCallback(on_train_batch_end=keep_features)
save = tf.keras.callbacks.ModelCheckpoint("checkpoints/classifier.keras", verbose=0)
"""
FIT = "model.fit(images, labels, epochs=120, verbose=0, callbacks=[keep, save])"
# A busy machine lets the training pause, and the forecast with it: any of these may be left out.
NEAR = re.compile("Limit in about [123]0 seconds")


def main() -> int:
    """Make the pictures; 1 if one is too large for the repository."""
    FOLDER.mkdir(exist_ok=True)
    animation = Animation()
    # Else the pages of TensorFlow's code count in the kernel's group. At the limit the system then drops and reads them
    # again, for minutes, instead of killing the kernel.
    subprocess.run([sys.executable, "-c", "import tensorflow"], check=True, capture_output=True)
    limit = make_limit(MEMORY_LIMIT_BYTES)
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            lab_server(Path(folder)) as server,
            sync_playwright() as playwright,
        ):
            write_options(Path(os.environ["JUPYTER_CONFIG_DIR"]), "off")  # it is to die
            lab = Lab(server, launch(playwright))
            page = lab.open(lab.notebook("train", DATA, MODEL, FIT))
            limit.add(pid_behind(server, "train"))
            before_the_limit(page, animation)
            after_the_crash(page, animation)
            lab.browser.close()
    finally:
        limit.remove()
    animation.save(FOLDER / "crash.webp")
    pictures = [*sorted(FOLDER.glob("*.png")), FOLDER / "crash.webp"]
    sizes = {path: path.stat().st_size for path in pictures}
    print("\n".join(f"{path.name}: {size:,} bytes" for path, size in sizes.items()))
    limits = {".png": FILE_LIMIT_BYTES, ".webp": ANIMATION_LIMIT_BYTES}
    return int(any(size > limits[path.suffix] for path, size in sizes.items()))


def before_the_limit(page: Page, animation: Animation) -> None:
    """Run the notebook beside a narrow panel; keep the panel when it says that the limit is near."""
    page.set_viewport_size({"width": 1080, "height": 860})
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
    training = panel.get_by_text(re.compile(r"epoch \d+ of"))
    training.wait_for(timeout=WAIT_MILLISECONDS)
    command(page, "notebook:clear-all-cell-outputs")  # messages of TensorFlow's import
    near, too_soon = panel.get_by_text(NEAR), panel.get_by_text(re.compile("^ended "))
    film(page, animation, near, too_soon.or_(death_dialog(page)), "climb")
    last = box(page.locator(".jp-TfGuard-Crashes"))
    place = box(panel)
    keep(page, "panel", place | {"height": last["y"] + last["height"] - place["y"]})
    film(page, animation, death_dialog(page), too_soon, "warning")


def after_the_crash(page: Page, animation: Animation) -> None:
    """Keep the dialog and, in a window without the sidebar, the report."""
    dialog = death_dialog(page)
    dialog.locator(".jp-TfGuard-Cause.jp-mod-known").wait_for(timeout=WAIT_MILLISECONDS)
    page.wait_for_timeout(1000)  # the dialog fades in
    animation.add(page, "dialog")
    keep(page, "dialog", around(dialog.locator(".jp-Dialog-content"), 14))
    dialog.get_by_role("button", name="Show why").click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    command(page, "application:toggle-mode")
    page.wait_for_timeout(1500)  # the layout moves
    animation.add(page, "report")
    keep(page, "report", around(report, 12) | {"height": 640})


def death_dialog(page: Page) -> Locator:
    """JupyterLab's dialog about the kernel."""
    return page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))


def film(page: Page, animation: Animation, until: Locator, failed: Locator, scene: str) -> None:
    """Add frames until something is visible.

    Raises:
        SystemExit: `failed` is visible, or neither is for a long time.
    """
    deadline = time.monotonic() + WAIT_MILLISECONDS / 1000
    while not until.first.is_visible():
        if failed.first.is_visible() or time.monotonic() > deadline:
            text = page.locator(".jp-TfGuard-body").inner_text()
            raise SystemExit(f"The scene {scene!r} did not end as expected. The panel:\n{text}")
        animation.add(page, scene)
        page.wait_for_timeout(FRAME_MILLISECONDS)


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
    """Write one picture, without notifications over it."""
    page.screenshot(path=FOLDER / f"{name}.png", clip=clip, style=".Toastify { display: none }")


if __name__ == "__main__":
    sys.exit(main())
