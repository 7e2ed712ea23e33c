"""What is printed from the store into a terminal or a file is text, also when a forger wrote the store himself."""

from __future__ import annotations

import itertools
import json
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mistune
import pytest

from jupyter_tfguard.cli import main
from jupyter_tfguard.config import TfGuard
from jupyter_tfguard.kernel.news import News
from jupyter_tfguard.kernel.status import _last_crash
from jupyter_tfguard.record.bundle import BundleStore, new_bundle_id
from jupyter_tfguard.report import text
from jupyter_tfguard.report.announce import announcement
from tests.browser.test_hostile import made_report
from tests.rigs.hostile import hostile_texts

_NEVER = ("Cc", "Cf", "Cs", "Zl", "Zp")


class Tags(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def check(page: str, *, line_ends: str = "\n\t") -> None:
    page.encode()
    bad = {c for c in page if unicodedata.category(c) in _NEVER and c not in line_ends}
    assert not bad, sorted(map(ascii, bad))


def test_no_report_prints_anything_but_text() -> None:
    texts = itertools.cycle(hostile.text for hostile in hostile_texts(5000))
    for _ in range(10):
        report = made_report(lambda: next(texts), "20200101-000000-1-abcd", 500)
        check(text.render(report))
        page = text.markdown(report)
        check(page)
        found = Tags()
        found.feed(mistune.create_markdown(escape=False)(page))
        assert found.names == {"pre", "code"}
        assert found.attributes == {"class"}


def test_lists_and_lines_for_the_next_kernel_are_single_lines_of_text(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = BundleStore(data_folder / "bundles")
    session: Any = SimpleNamespace(news=News(TfGuard(), None, None))
    kinds = hostile_texts(400, seed=7)
    for hostile in kinds[:40]:
        bundle_id = new_bundle_id(1, 1.0)
        report = made_report(lambda text=hostile.text: text, bundle_id, 500)  # type: ignore[misc]
        store.save(
            {"id": bundle_id, "format": [1, 0]}, report, report | {"next_step": hostile.text}
        )
        for line in announcement(store, report["kernel_id"], None):
            check(line, line_ends="")
        check(_last_crash(session), line_ends="")
        assert main(["list"]) == 0
        printed = capsys.readouterr().out
        check(printed)
        assert len(printed.splitlines()) == 2
        assert main(["why"]) == 0
        check(capsys.readouterr().out)
        assert main(["why", "--json"]) == 0
        told = capsys.readouterr().out
        check(told)
        json.loads(told)
        store.remove(bundle_id)
