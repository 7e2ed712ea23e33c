"""A report as a page: every text only a text, whatever is in it, and old reports too."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.report import html
from jupyter_tfguard.report.wire import to_report
from tests.rigs.examples import EXAMPLES, Example, examples
from tests.rigs.hostile import hostile_texts

pytestmark = pytest.mark.quick

_FIXED = {"kind", "confidence", "crashed_at", "written_at", "name"}


class Skeleton(HTMLParser):
    """Elements with the names of their attributes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_decl(self, decl: str) -> None:
        self.found.append(("!", decl))

    def handle_comment(self, data: str) -> None:
        self.found.append(("!--",))


def sample() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXAMPLES.parent / "wire/report.json").read_text())
    return found


def filled(value: Any, text: Callable[[], str], key: str = "") -> Any:
    """The same shape with every text replaced."""
    if isinstance(value, str):
        return value if key in _FIXED else text()
    if isinstance(value, dict):
        return {name: filled(item, text, name) for name, item in value.items()}
    return [filled(item, text, key) for item in value] if isinstance(value, list) else value


def test_five_thousand_hostile_texts_make_no_element_and_no_attribute() -> None:
    texts = itertools.cycle([hostile.text for hostile in hostile_texts(5000)])
    links = html.Links("/list", "/markdown", "/bundle")
    report = sample()
    shown = itertools.count()

    def hostile() -> str:
        next(shown)
        return (
            f"{next(texts)}."  # some are nothing once they are printable, and nothing is left out
        )

    words = Skeleton(html.render(filled(report, lambda: "a word"), links)).found
    assert len(words) > 100
    while next(shown) < 5000:
        page = html.render(filled(report, hostile), links)
        assert Skeleton(page).found == words
        assert "\x1b" not in page
        assert "\u202e" not in page


@pytest.mark.parametrize("example", examples("fires") + examples("quiet"), ids=str)
def test_every_example_is_a_page(example: Example) -> None:
    report = to_report(example.bundle, diagnose(example.bundle))
    page = html.render(report)
    assert "How we know" in page
    assert page.rstrip().endswith("</html>")


def test_a_report_of_an_older_version_is_a_page() -> None:
    report = sample()
    del report["same_before_count"]
    del report["memory"]["events"], report["memory"]["curves"]
    report["memory"]["marks"] = [{"time": 1795227147.0, "label": "[7]"}]
    del report["left"]["checkpoint"]["resume_code"]
    for fact in report["evidence"]:
        fact.pop("raw", None)
    page = html.render(report)
    assert "<svg" in page
    assert "None" not in page


def test_what_is_not_known_is_a_dash() -> None:
    report = sample()
    report["left"]["metrics"]["rows"] = [[1, None, "nan", 0.5]]
    assert "<td>–</td><td>nan</td><td>0.5</td>" in html.render(report)


def test_each_card_has_a_chart_of_its_own_beside_the_kernels() -> None:
    page = html.render(sample())
    assert page.count('role="img"') == 2
    assert "GPU 0 memory 24.0 GiB" in page
    assert "container limit 8.00 GiB" in page
    assert "<title>90 % of the limit</title>" in page
