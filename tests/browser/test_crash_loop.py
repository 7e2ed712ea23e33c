"""Deaths that are counted together: one row in the list, a report that reads like any other, and a way to forget it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.places import bundles_folder
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.record.bundle import READ, BundleStore
from jupyter_tfguard.record.facts import ExitFacts, ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.report.publish import Publisher
from tests.browser.conftest import command, picture, theme

if TYPE_CHECKING:
    from tests.browser.conftest import Lab


def die(kernel_id: str, count: int, *, signal: str = "SIGSEGV", minutes: float = 20.0) -> None:
    """That many deaths of one kernel, a tenth of a second apart, as a watcher hands them on."""
    publisher = Publisher(BundleStore(bundles_folder()), TfGuard())
    began = time.time() - 60 * minutes
    for number in range(count):
        facts = ServerFacts(exit=ExitFacts(signal, None, "waitid"), died=began + number / 10)
        publisher.publish(
            capture(
                identity=ProcessIdentity(4711 + number, 1),
                kernel_id=kernel_id,
                kernel_name="python3",
                notebook_path="course/train-cnn.ipynb",
                server=facts,
            )
        )


@pytest.fixture
def many_deaths(lab: Lab) -> Iterator[None]:
    """A crash loop with two causes, and deaths of many kernels. Made after `lab`, which marks what is there as read."""
    store = BundleStore(bundles_folder())
    forget_all(store)
    publisher = Publisher(store, TfGuard())
    for number in range(120):
        facts = ServerFacts(exit=ExitFacts("SIGKILL", None, "waitid"), died=time.time() - 1500)
        bundle = capture(
            identity=ProcessIdentity(9000 + number, 1), kernel_id=f"k{number}", server=facts
        )
        publisher.count(bundle)
    die("loops", 6)
    die("loops", 994, signal="SIGABRT", minutes=18)
    for entry in store.entries()[2:]:
        store.mark(entry["id"], READ)
    yield
    forget_all(store)


def forget_all(store: BundleStore) -> None:
    """Leave no report."""
    for entry in store.entries():
        store.remove(entry["id"])


@pytest.mark.usefixtures("many_deaths")
def test_a_crash_loop_is_one_row_that_opens_and_can_be_forgotten(lab: Lab) -> None:
    page = lab.open()
    command(page, "tfguard:open-panel")
    deaths = page.locator(".jp-TfGuard-Deaths")
    deaths.wait_for()
    row = deaths.locator(".jp-TfGuard-Death", has_text="995 deaths")
    row.wait_for()
    assert row.count() == 1
    # "today", but for the first minutes after midnight.
    assert re.search(r"train-cnn\.ipynb · since \w+ \d\d:\d\d", row.inner_text())
    assert deaths.locator(".jp-TfGuard-Death", has_text="120 kernels").count() == 1
    assert deaths.locator(".jp-TfGuard-Death").count() == 2
    deaths.get_by_role("button", name="Show 5 more reports of it").click()
    assert deaths.locator(".jp-TfGuard-Death").count() == 7
    deaths.get_by_role("button", name="Show fewer").click()
    toast = page.locator(".Toastify__toast", has_text="again and again")
    toast.wait_for(timeout=120_000)
    page.wait_for_timeout(800)
    picture(page, "crash-loop-light")
    theme(page, dark=True)
    page.wait_for_timeout(800)
    picture(page, "crash-loop-dark")
    theme(page, dark=False)
    row.click()
    report = page.locator(".jp-TfGuard-Report")
    report.wait_for()
    assert "This kernel died 995 more times" in report.inner_text()
    page.wait_for_timeout(500)
    picture(page, "crash-loop-report")
    report.get_by_role("button", name="Forget…").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Forget").click()
    report.wait_for(state="detached")
    row.wait_for(state="detached")
    assert not [
        e
        for e in BundleStore(bundles_folder()).entries()
        if e["kernel_id"] == "loops" and e["group"]
    ]
