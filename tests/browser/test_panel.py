"""The panel is live while the kernel is busy, and plain where there is nothing to show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.browser.conftest import command, picture, pictures, run
from tests.browser.faked import FakedStream
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import Lab

FIT = """\
import numpy as np, tensorflow as tf
x = np.random.rand(2000, 40, 40, 3).astype("float32"); y = np.random.randint(0, 10, 2000)
model = tf.keras.Sequential([tf.keras.layers.Input((40, 40, 3)), tf.keras.layers.Conv2D(16, 3, activation="relu"),
    tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(), tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
model.fit(x, y, batch_size=32, epochs=400, verbose=0)
"""


def test_the_panel_is_live_during_fit_in_light_and_dark(lab: Lab) -> None:
    page = lab.open(lab.notebook("train", FIT))
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-Panel")
    panel.wait_for()
    run(page)
    training = panel.locator(".jp-TfGuard-Training")
    training.wait_for()
    seen = set()
    for _ in range(40):
        text = training.inner_text()
        if found := re.search(r"epoch (\d+) of 400", text):
            seen.add(found[1])
        if len(seen) >= 3:
            break
        page.wait_for_timeout(500)
    assert len(seen) >= 3, f"the training card stood still: {seen} {training.inner_text()}"
    assert "busy" in page.locator(".jp-StatusBar-Widget", has_text="Python 3").inner_text().lower()
    text = panel.inner_text()
    assert re.search(r"\d(\.\d+)? [MG]iB", text)
    assert "No NVIDIA GPU" in text or "GPU 0" in text
    assert "guarding" in text
    pictures(page, "panel-fit")


def test_every_section_stays_when_the_kernel_is_older_than_the_chart(lab: Lab) -> None:
    streams: list[FakedStream] = []
    errors: list[str] = []

    def prepare(page: Page) -> None:
        streams.append(FakedStream(page))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console", lambda said: errors.append(said.text) if "tfguard" in said.text else None
        )

    page = lab.open(lab.notebook("old", "1"), prepare=prepare)
    command(page, "tfguard:open-panel")
    wait_until(streams[0].is_watched, "the page asks for its kernel")
    streams[0].send_history(3_600)
    memory = page.locator(".jp-TfGuard-HostMemory")
    memory.locator("canvas").wait_for()
    sections = page.locator(".jp-TfGuard-Section").count()
    for _ in range(66):  # eleven minutes, and after each ten seconds one drawing
        streams[0].send_numbers(10)
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
    assert memory.locator("canvas").is_visible()
    assert page.locator(".jp-TfGuard-Section").count() == sections
    assert page.get_by_text("This section stopped working.").count() == 0
    assert errors == []
    picture(page, "panel-old-kernel")
