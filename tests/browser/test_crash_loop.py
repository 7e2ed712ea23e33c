"""A crash loop: one row in the list that unfolds, and reports that can be forgotten one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.postmortem.handle import Postmortem
from jupyter_tfguard.record.bundle import READ, BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity
from tests.browser.conftest import command, picture, theme

if TYPE_CHECKING:
    from tests.browser.conftest import Lab


LOOP = 12


@pytest.fixture
def crash_loop(lab: Lab) -> Iterator[None]:
    """A crash loop, and a crash of another cause. Made after `lab`, which marks what is there as read."""
    store = BundleStore(bundles_folder())
    forget_all(store)
    postmortem = Postmortem(store.root.parent / "recordings", store, TfGuard())
    began = time.time() - 20 * 60
    for number, signal in enumerate(["SIGABRT", *["SIGSEGV"] * LOOP]):
        bundle = capture(
            identity=ProcessIdentity(4711 + number, 1),
            kernel_id="loops",
            kernel_name="python3",
            notebook_path="course/train-cnn.ipynb",
            server=ServerFacts(exit=ExitFacts(signal, None, "waitid"), died=began + 5 * number),
        )
        postmortem.report(bundle)
    for entry in store.entries()[1:]:
        store.mark(entry["id"], READ)
    yield
    forget_all(store)


def forget_all(store: BundleStore) -> None:
    """Leave no report."""
    for entry in store.entries():
        store.remove(entry["id"])


@pytest.mark.usefixtures("crash_loop")
def test_a_crash_loop_is_one_row_that_opens_and_can_be_forgotten(lab: Lab) -> None:
    page = lab.open()
    command(page, "tfguard:open-panel")
    deaths = page.locator(".jp-TfGuard-Deaths")
    deaths.wait_for()
    row = deaths.locator(".jp-TfGuard-Death", has_text=f"{LOOP} ×")
    row.wait_for()
    assert deaths.locator(".jp-TfGuard-Death").count() == 2
    deaths.get_by_role("button", name=f"Show {LOOP - 1} more reports of it").click()
    assert deaths.locator(".jp-TfGuard-Death").count() == LOOP + 1
    deaths.get_by_role("button", name="Show fewer").click()
    page.locator(".Toastify__toast", has_text="train-cnn.ipynb").wait_for()
    picture(page, "crash-loop-light")
    theme(page, dark=True)
    picture(page, "crash-loop-dark")
    theme(page, dark=False)
    row.click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    assert "The same death for the 12th time" in report.inner_text()
    report.get_by_role("button", name="Forget…").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Forget").click()
    report.wait_for(state="detached")
    deaths.locator(".jp-TfGuard-Death", has_text=f"{LOOP - 1} ×").wait_for()
    assert len(BundleStore(bundles_folder()).entries()) == LOOP
