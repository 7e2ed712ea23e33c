"""What is below a part of the panel does not move when that part gets something to say; no button covers code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.browser.conftest import command, picture
from tests.browser.faked import FakedStream, fake, sample
from tests.rigs.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import Lab


def top(found: Locator) -> float:
    place = found.bounding_box()
    assert place is not None
    return place["y"]


def test_the_list_of_deaths_stays_where_it_is(lab: Lab) -> None:
    streams: list[FakedStream] = []
    page = lab.open(
        lab.notebook("layout", "1"), prepare=lambda page: streams.append(FakedStream(page))
    )
    [stream] = streams
    command(page, "tfguard:open-panel")
    wait_until(stream.is_watched, "the page asks for its kernel")
    training = sample("tick")["kernel"]["training"]
    stream.send_history(60)
    deaths, card = page.locator(".jp-TfGuard-Crashes"), page.locator(".jp-TfGuard-Training")

    def show(changes: dict[str, Any], text: str) -> float:
        stream.send_tick(**changes)
        page.get_by_text(text).wait_for()
        return top(deaths)

    before = show({"training": None}, "No training yet.")
    assert show({"training": training}, "219 of 313") == before
    many = {f"a_long_name_of_a_metric_{index}": 0.123 for index in range(9)}
    assert show({"training": training | {"logs": many, "step": 220}}, "220 of 313") == before
    assert card.locator("[role=progressbar]").count() == 1
    gone = {"watched": False, "unwatched_reason": "starting", "training": None, "pid": None}
    assert show(gone, "restarting") == before
    assert page.get_by_text("not tracked").count() == 0
    picture(page, "panel-restarting")


def test_no_button_covers_the_code_of_a_report(lab: Lab) -> None:
    notebook = lab.notebook("a-notebook-with-a-name-that-is-much-too-long-for-a-tab", "1")

    def prepare(page: Page) -> None:
        fake(page, notebook.name, "none")

    page = lab.open(notebook, prepare=prepare)
    command(page, "tfguard:show-last-report")
    page.locator(".jp-TfGuard-Report").wait_for()
    page.set_viewport_size({"width": 900, "height": 900})
    page.wait_for_timeout(500)
    hidden = page.evaluate(
        """() => [...document.querySelectorAll(".jp-TfGuard-CodeBlock")].filter(block => {
            const [code, button] = [block.querySelector("code"), block.querySelector("button")];
            const range = document.createRange();
            range.selectNodeContents(code);
            const pre = code.parentElement;
            return range.getBoundingClientRect().right > button.getBoundingClientRect().left
                || pre.scrollWidth > pre.clientWidth;
        }).map(block => block.textContent)"""
    )
    assert page.locator(".jp-TfGuard-CodeBlock").count() >= 2
    assert hidden == []
    tab = page.locator(".lm-TabBar-tab", has_text="…").inner_text()
    assert tab.startswith("a-noteb…")
    assert ".ipynb 0" in tab or ".ipynb 1" in tab or ".ipynb 2" in tab
    picture(page, "report-narrow")
