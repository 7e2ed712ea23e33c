"""What a watcher keeps of the samples of one kernel is bounded."""

from __future__ import annotations

import math
import time

import pytest

from jupyter_tfguard.watch.history import (
    CHART_LIMIT,
    COLUMNS,
    ROW_LIMIT,
    ROW_SECONDS,
    History,
    Rows,
)

pytestmark = pytest.mark.quick


def values_of(rows: Rows) -> list[tuple[float | None, ...]]:
    return [row[1:] for row in rows.read()]


def test_the_oldest_rows_are_overwritten() -> None:
    rows = Rows(1, 3, 1e9)
    for number in range(5):
        rows.add(float(number), [number * 10.0])
    assert values_of(rows) == [(20.0,), (30.0,), (40.0,)]


def test_rows_that_are_too_old_go() -> None:
    rows = Rows(1, 100, 10.0)
    for moment in (0.0, 5.0, 9.0, 15.5):
        rows.add(moment, [moment])
    assert values_of(rows) == [(9.0,), (15.5,)]


def test_times_are_those_of_the_wall_clock() -> None:
    rows = Rows(1, 2, 1e9)
    before = time.time()
    rows.add(time.monotonic(), [1.0])
    [(when, _)] = rows.read()
    assert when is not None
    assert before - 0.1 <= when <= time.time() + 0.1


def full(history: History, hertz: float, seconds: float, start: float = 0.0) -> float:
    sample = (1.0,) * len(COLUMNS)
    for tick in range(int(seconds * hertz)):
        if history.add(start + tick / hertz, sample):
            history.add_to_chart(start + tick / hertz, 1.0)
    return start + seconds


def test_a_busy_day_keeps_two_minutes_of_samples() -> None:
    history = History()
    full(history, 10, 2000)
    assert len(history.rows) == ROW_LIMIT
    assert len(history.chart) == CHART_LIMIT


def test_an_idle_kernel_keeps_no_more_than_two_minutes() -> None:
    history = History()
    now = full(history, 10, 2000)
    full(history, 1, 2000, start=now)
    assert ROW_SECONDS <= len(history.rows) <= ROW_SECONDS + 1


def test_the_chart_gets_a_row_every_two_seconds() -> None:
    history = History()
    for tick in range(100):
        if history.add(1000 + tick / 10, (7.0,) * len(COLUMNS)):
            history.add_to_chart(1000 + tick / 10, 7.0)
    chart = values_of(history.chart)
    assert len(chart) == 5
    assert chart[0] == (7.0,)


def test_what_is_no_number_is_unknown() -> None:
    history = History()
    for moment, size in enumerate((math.inf, -math.inf, math.nan, 1e9)):
        history.add(float(moment), [size] + [0.0] * (len(COLUMNS) - 1))
        history.add_to_chart(float(moment), size)
    assert [row[0] for row in values_of(history.rows)] == [None, None, None, 1e9]
    assert values_of(history.chart) == [(None,)] * 3 + [(1e9,)]
