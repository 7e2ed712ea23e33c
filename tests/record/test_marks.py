"""Marks of cells and fits on the time axis."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.record.events import event_of
from jupyter_tfguard.record.marks import MarkReader

pytestmark = pytest.mark.quick


def cell(moment: float, count: object = 1, wall: float | None = None) -> dict[str, Any]:
    when = 1e9 + moment if wall is None else wall
    return {"kind": "cell_start", "t": when, "m": moment, "execution_count": count}


def fit(moment: float, what: object = "fit", wall: float | None = None) -> dict[str, Any]:
    when = 1e9 + moment if wall is None else wall
    return {"kind": "fit_start", "t": when, "m": moment, "what": what}


def labels(*events: dict[str, Any], limit: int = 20) -> list[str]:
    reader = MarkReader(limit)
    for event in events:
        if (read := event_of(event)) is not None:
            reader.take(read)
    return [mark.label for mark in reader.marks]


def test_a_cell_and_a_fit_in_it_are_two_marks() -> None:
    assert labels(cell(0, 3), fit(5), fit(9, "predict")) == ["[3]", "[3] fit", "[3] predict"]


def test_a_cell_that_does_nothing_but_fit_has_one_mark() -> None:
    assert labels(cell(0, 3), fit(0.5)) == ["[3] fit"]
    assert labels(cell(0, 3), fit(0.2), fit(0.4)) == ["[3] fit", "[3] fit"]


def test_the_same_moment_is_identified_by_the_monotonic_clock() -> None:
    assert labels(cell(0, 3, wall=1e9), fit(50, wall=1e9)) == ["[3]", "[3] fit"]
    assert labels(cell(0, 3, wall=1e9), fit(0.1, wall=1e9 + 3600)) == ["[3] fit"]


def test_a_cell_without_a_number_is_a_cell_all_the_same() -> None:
    assert labels(cell(0, None), cell(5, 2), cell(9, True), fit(20)) == [
        "cell",
        "[2]",
        "cell",
        "fit",
    ]
    assert labels(cell(0, None), fit(0.1)) == ["fit"]


def test_the_newest_are_kept() -> None:
    assert labels(*(cell(n, n) for n in range(1, 50)), limit=2) == ["[48]", "[49]"]


@pytest.mark.parametrize("bad", [None, "x", float("nan"), float("inf"), 1e300, True, []])
@pytest.mark.parametrize("name", ["t", "m", "execution_count", "what"])
def test_a_forged_event_is_left_out_or_has_a_plain_label(name: str, bad: object) -> None:
    found = labels(cell(1) | {name: bad}, fit(5) | {name: bad})
    assert all(len(label) < 60 for label in found)
    assert len(found) == (0 if name == "t" else 2)
