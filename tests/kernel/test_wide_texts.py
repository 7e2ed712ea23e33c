"""A list of texts, one of which is much longer than the others, while NumPy makes an array of them."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_tfguard.kernel.cells.wide_texts import wide_texts
from jupyter_tfguard.units import MIB

pytestmark = pytest.mark.quick

ADDED = 100 * MIB
SHORT, LONG = ["short"] * 10_000, "long" * 1000


@pytest.fixture
def cell() -> Iterator[str]:
    name = "<a cell of this test>"
    yield name
    linecache.cache.pop(name, None)


def found(name: str, code: str, names: dict[str, Any]) -> Any:
    """The answer for the frame of a cell, while the call of `make` in it runs."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    answers = []

    def make(*_: Any) -> None:
        answers.append(wide_texts(sys._getframe(1), ADDED))

    exec(compile(code, name, "exec"), {"make": make, **names})
    return answers[0]


def test_the_list_and_its_longest_text_are_named(cell: str) -> None:
    one = found(cell, "str(make(rows, 'U'))\n", {"rows": [*SHORT, LONG]})
    assert one.name == "rows"
    assert one.added_bytes == ADDED
    assert one.size_bytes == 4 * 4000 * 10_001
    assert "each of its 10,001 texts as wide as the longest, which has 4,000 characters" in one.text


@pytest.mark.parametrize(
    "names",
    [
        {"rows": [*SHORT, LONG[:100]]},  # smaller than what the cell added
        {"rows": [LONG] * 10_001},  # all are long
        {"rows": [*SHORT, LONG, 1]},
        {"rows": iter([*SHORT, LONG])},
        {"rows": [*SHORT, LONG], "other": 1},
        {},
    ],
    ids=["small", "alike", "mixed", "iterator", "another", "missing"],
)
def test_nothing_else_is_named(cell: str, names: dict[str, Any]) -> None:
    argument = "other" if "other" in names else "rows" if names else "1"
    assert found(cell, f"make({argument})\n", names) is None
