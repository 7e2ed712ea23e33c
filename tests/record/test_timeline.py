"""One line of the server's rows and the kernel's word: whose each point is, and that the server's win."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest

from jupyter_tfguard.record.series import StretchSummary
from jupyter_tfguard.record.timeline import MAIN_METRICS, Point, thinned_table, timeline

pytestmark = pytest.mark.quick

RSS = "process.rss_bytes"
DIED = 10_000.0


def table(*rows: tuple[object, ...]) -> dict[str, Any]:
    return {"columns": ["time", RSS], "rows": [list(row) for row in rows]}


def summaries(*rows: tuple[object, ...]) -> dict[str, Any]:
    return {"columns": ["time", f"{RSS}.min", f"{RSS}.max"], "rows": [list(row) for row in rows]}


def told(found: list[Point]) -> list[tuple[float, float, str]]:
    return [(point.time, point.highest, point.source) for point in found]


def test_where_both_cover_the_moment_the_server_wins() -> None:
    server = table(*((9000.0 + n, 1.0) for n in range(10)))
    kernel = {"samples": table(*((8995.0 + n, 2.0) for n in range(20)))}
    found = told(timeline(RSS, server, kernel, DIED))
    assert [t for t, _, _ in found] == [8995.0 + n for n in range(20)]
    assert [s for _, _, s in found] == 5 * ["kernel"] + 10 * ["server"] + 5 * ["kernel"]
    assert [v for _, v, s in found if s == "server"] == [1.0] * 10


def test_each_resolution_reports_only_what_finer_ones_do_not() -> None:
    kernel = {
        "samples": table((9900.0, 5.0), (9900.1, 6.0)),
        "seconds": summaries((9899.0, 3.0, 4.0), (9900.0, 1.0, 9.0)),
        "minutes": summaries((9800.0, 1.0, 2.0), (9860.0, 1.0, 3.0), (9900.0, 0.0, 99.0)),
    }
    found = timeline(RSS, {}, kernel, DIED)
    assert [(p.time, p.lowest, p.highest) for p in found] == [
        (9800.0, 1.0, 2.0),
        (9860.0, 1.0, 3.0),
        (9899.0, 3.0, 4.0),
        (9900.0, 5.0, 5.0),
        (9900.1, 6.0, 6.0),
    ]


def test_what_the_kernel_says_of_the_time_after_its_death_is_left_out() -> None:
    kernel = {"samples": table((DIED - 1, 1.0), (DIED + 0.5, 2.0), (DIED + 600, 3.0))}
    assert [p.highest for p in timeline(RSS, {}, kernel, DIED)] == [1.0, 2.0]
    server = table((DIED + 3, 4.0))
    assert [p.highest for p in timeline(RSS, server, {}, DIED)] == [4.0]


@pytest.mark.parametrize(
    "forged",
    [
        None,
        7,
        [],
        {"columns": None, "rows": []},
        {"columns": ["time", RSS], "rows": 3},
        {"columns": ["time", RSS], "rows": [None, 3, [], [1.0], ["a", "b"], [None, 1.0]]},
        {"columns": ["time", RSS], "rows": [[math.nan, 1.0], [1.0, math.inf], [True, 1.0]]},
        {"columns": ["time", f"{RSS}.min"], "rows": [[1.0, 1.0]]},
        {"columns": ["time", f"{RSS}.max"], "rows": [[1.0, 1.0]]},
        {"columns": [[], {}], "rows": [[1.0, 1.0]]},
    ],
)
@pytest.mark.parametrize("resolution", ["samples", "seconds", "minutes"])
def test_forged_tables_report_nothing(resolution: str, forged: object) -> None:
    assert timeline(RSS, {}, {resolution: forged}, DIED) == []


def week(count: int) -> list[StretchSummary]:
    columns = (RSS, "cgroup.limit_bytes", "host.available_bytes")
    numbers = [
        [n, 1, math.nan, 2 * n, 1, math.nan, n, 1, math.nan] for n in map(float, range(count))
    ]
    return [
        StretchSummary(n + 1, float(n), 60.0 * n, columns, array("f", numbers[n]))
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 3600, 10_080])
def test_a_table_of_summaries_is_bounded_and_keeps_every_extreme(count: int) -> None:
    found = thinned_table(week(count), 1000)
    rows = found["rows"]
    assert len(rows) <= 1000
    if count == 0:
        assert found == {"columns": ["time"], "rows": []}
        return
    names = ["time", f"{RSS}.min", f"{RSS}.max"]
    names += ["host.available_bytes.min", "host.available_bytes.max"]
    assert found["columns"] == names
    assert set(MAIN_METRICS) >= {RSS, "host.available_bytes"}
    assert rows[-1][0] == 60.0 * (count - 1)
    stretch = -(-count // 1000)
    for number, row in enumerate(rows):
        first, last = number * stretch, min(count, (number + 1) * stretch) - 1
        assert row == [60.0 * last, float(first), 2.0 * last, None, None]
