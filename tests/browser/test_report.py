"""The report of a fit that died: its timeline by mouse and keyboard, its events, its export, its page, and its tab."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Lab, command, patient, picture, pictures, run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

    from jupyter_tfguard.demo.server import DemoServer

MAKE = """\
import os, signal, time
import keras, numpy as np
x = np.ones((64, 8), "float32")
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
FIT = """\
class Dies(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        held.append(np.ones((4_000_000,)))
        time.sleep(0.7)
        if epoch == 5:
            print("giving up", os.path.expanduser("~"), flush=True)
            os.write(2, b"license q9Xt2LbV7cRm4KwZp1Ns of ACME\\n")
            os.kill(os.getpid(), signal.SIGKILL)

held = []
kept = keras.callbacks.ModelCheckpoint("run-{epoch}.keras")
model.fit(x, x[:, :1], epochs=20, verbose=0, callbacks=[kept, Dies()])
"""
KILL = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"


@pytest.fixture(scope="module")
def report_id(server: DemoServer, browser: Browser) -> str:
    """Of a real fit that was killed in its sixth epoch."""
    lab = Lab(server, browser)
    notebook = lab.notebook("fit-that-dies", MAKE, FIT)
    page = lab.open(notebook)
    session = next(s for s in server.get("api/sessions") if s["path"] == notebook.name)
    run(page)
    dialog = page.locator(".jp-Dialog", has_text=re.compile("appears to have died"))
    dialog.wait_for()
    found = None
    for _ in range(100):
        found = server.report_of(session["kernel"]["id"])
        if found is not None:
            break
        page.wait_for_timeout(200)
    assert found is not None
    page.close()
    server.end_session(session)
    return str(found["id"])


@pytest.fixture
def page(lab: Lab, report_id: str) -> Iterator[Page]:
    """JupyterLab with the report alone."""
    found = lab.open()
    command(found, "application:close-all")
    command(found, "tfguard:show-report", {"id": report_id})
    found.locator(".jp-TfGuard-Report").wait_for()
    found.locator(".jp-TfGuard-Chart canvas").first.wait_for()
    found.wait_for_timeout(800)
    yield found
    found.close()


def chart(page: Page) -> Locator:
    return page.locator(".jp-TfGuard-Chart").first


def time_at(page: Page, share: float) -> str:
    """The time that the cursor shows at this part of the chart's width."""
    box = chart(page).locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
    page.wait_for_timeout(150)
    text = chart(page).locator(".jp-TfGuard-Chart-readout").inner_text()
    found = re.match(r"\d\d:\d\d:\d\d", text)
    assert found is not None, text
    return found.group()


def test_a_fit_that_dies_has_its_events_and_the_way_to_go_on(page: Page, report_id: str) -> None:
    report = page.locator(".jp-TfGuard-Report")
    left = report.locator(".jp-TfGuard-Left").inner_text()
    assert "keras.models.load_model" in left
    assert "run-5.keras" in left or "run-6.keras" in left
    assert "initial_epoch=" in left
    assert "epochs=20" in left
    pictures(page, "report-fit")
    report.locator(".jp-TfGuard-Evidence").evaluate("e => e.scrollIntoView()")
    picture(page, "report-evidence", 300)
    page.locator(".jp-TfGuard-ReportView").evaluate("e => e.scrollTo(0, 0)")


def test_dragging_zooms_and_a_button_shows_all_again(page: Page) -> None:
    all_button = page.get_by_role("button", name="Show all")
    assert all_button.count() == 0
    first, last = time_at(page, 0.02), time_at(page, 0.9)
    box = chart(page).locator(".u-over").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, y, steps=5)
    page.mouse.up()
    all_button.wait_for()
    page.wait_for_timeout(200)
    assert first < time_at(page, 0.02) < last
    picture(page, "report-zoomed")
    all_button.click()
    all_button.wait_for(state="detached")
    page.wait_for_timeout(200)
    assert time_at(page, 0.02) == first


def test_the_keyboard_zooms_goes_along_and_shows_all(page: Page) -> None:
    chart(page).focus()
    all_button = page.get_by_role("button", name="Show all")
    readout = chart(page).locator(".jp-TfGuard-Chart-readout")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    before = readout.inner_text()
    assert re.match(r"\d\d:\d\d:\d\d · ", before)
    page.keyboard.press("+")
    page.keyboard.press("+")
    all_button.wait_for()
    for _ in range(60):
        page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(200)
    assert readout.inner_text()[:8] < before[:8]
    page.keyboard.press("-")
    assert all_button.count() == 1
    page.keyboard.press("0")
    all_button.wait_for(state="detached")


def test_the_export_is_shown_before_it_is_saved_and_the_file_opens(
    page: Page, report_id: str, tmp_path: Path
) -> None:
    page.get_by_role("button", name="Export…").click()
    dialog = page.locator(".jp-Dialog")
    key = "q9Xt2LbV7cRm4KwZp1Ns"
    flagged = dialog.get_by_role("region", name="May be a secret or a name")
    flagged.get_by_text(key).wait_for()
    pictures(page, "export-flagged")
    dialog.get_by_text("report.md").click()
    dialog.locator("pre", has_text="```text").wait_for()
    dialog.locator("details[open] mark", has_text=key).first.scroll_into_view_if_needed()
    picture(page, "export-marked")
    # By keyboard: replace the flagged text and a word, and leave a part out.
    flagged.get_by_role("button", name=f"Replace {key}").press("Enter")
    dialog.get_by_role("button", name=f"Do not replace {key}").wait_for()
    flagged.wait_for(state="detached")
    dialog.get_by_label("Replace in all files").fill("acme")
    dialog.get_by_label("Replace in all files").press("Enter")
    dialog.get_by_role("checkbox", name="Text of cells").press("Space")
    dialog.locator("details[open] mark", has_text="[replaced]").first.wait_for()
    dialog.locator("details[open] mark", has_text="[left out]").first.wait_for()
    picture(page, "export-preview")
    with page.expect_download() as waiting:
        dialog.get_by_role("button", name="Download").click()
    saved = tmp_path / "bundle.zip"
    waiting.value.save_as(saved)
    assert waiting.value.suggested_filename == f"tfguard-{report_id}.zip"
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        texts = {name: archive.read(name).decode() for name in names}
    assert names == ["bundle.json", "report.json", "report.md", "report.html"]
    assert json.loads(texts["bundle.json"])["id"] == report_id
    assert json.loads(texts["report.json"])["id"] == report_id
    whole = "".join(texts.values())
    assert "[replaced] of [replaced]" in whole
    for gone in (str(Path.home()) + "/", key, "ACME"):
        assert gone not in whole, gone


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_a_page_of_the_server_without_any_script(
    lab: Lab, report_id: str, scheme: str
) -> None:
    context = lab.browser.new_context(
        viewport={"width": 1060, "height": 1000},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    bare = patient(context.new_page())
    problems: list[str] = []
    bare.on("console", lambda message: problems.append(message.text))
    bare.goto(f"{lab.server.url}tfguard/report?token={lab.server.token}")
    bare.locator(f"a[href$='{report_id}']").click()
    bare.locator("article").wait_for()
    assert "How we know".lower() in bare.locator("article").inner_text().lower()
    assert bare.locator("svg polyline").count() >= 1
    assert bare.locator("script").count() == 0
    background = bare.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    assert problems == []
    picture(bare, f"page-{scheme}")
    with bare.expect_download() as waiting:
        bare.get_by_role("link", name="Export redacted bundle").click()
    assert waiting.value.suggested_filename.endswith(".zip")
    context.close()


def test_the_tab_of_a_report_is_there_again_after_a_reload(page: Page, report_id: str) -> None:
    page.wait_for_timeout(1500)  # until the layout is saved
    page.goto(page.url.split("?")[0], wait_until="domcontentloaded")
    page.wait_for_selector("#jp-main-dock-panel")
    tab = page.locator(f"#jp-tfguard-report-{report_id}")
    tab.locator(".jp-TfGuard-Report").wait_for()


def test_a_narrow_window_is_not_split_for_a_report(lab: Lab, report_id: str) -> None:
    notebook = lab.notebook("narrow", "1")
    page = lab.open(
        notebook, prepare=lambda page: page.set_viewport_size({"width": 800, "height": 500})
    )
    main = page.locator("#jp-main-dock-panel")
    command(page, "tfguard:show-report", {"id": report_id})
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    picture(page, "report-narrow")
    assert report.evaluate("e => e.clientWidth") > 0.8 * main.evaluate("e => e.clientWidth")
    page.set_viewport_size({"width": 580, "height": 700})
    page.wait_for_timeout(500)
    footer = report.locator("footer")
    footer.scroll_into_view_if_needed()
    picture(page, "report-very-narrow")
    right = "e => e.getBoundingClientRect().right"
    for button in footer.get_by_role("button").all():
        assert button.evaluate(right) <= report.evaluate(right)


def test_a_console_has_no_dialog_and_the_notification_reports_its_death(lab: Lab) -> None:
    page = lab.open()
    command(page, "console:create", {"kernelPreference": {"name": "python3"}})
    page.wait_for_selector(".jp-CodeConsole-promptCell .cm-content")
    page.wait_for_selector(".jp-CodeConsole-banner, .jp-CodeConsole .jp-OutputArea")
    page.wait_for_timeout(2500)
    page.locator(".jp-CodeConsole-promptCell .cm-content").click()
    page.keyboard.insert_text(KILL.replace("\n", "; "))
    page.keyboard.press("Shift+Enter")
    toast = page.locator(".Toastify__toast", has_text="killed")
    toast.wait_for()
    assert page.locator(".jp-Dialog").count() == 0
    toast.get_by_role("button", name="Show why").click()
    page.locator(".jp-TfGuard-Report", has_text="Console 1").wait_for()
