"""The memory that a watcher spends on one kernel is fixed."""

from __future__ import annotations

import pytest

from jupyter_tfguard.watch.history import CHART_LIMIT, COLUMNS, ROW_LIMIT, History, Rows

pytestmark = pytest.mark.quick


def test_the_oldest_rows_are_overwritten() -> None:
    rows = Rows(1, 3)
    for number in range(5):
        rows.add(float(number), [number * 10.0])
    assert rows.read() == [(2.0, 20.0), (3.0, 30.0), (4.0, 40.0)]


def test_unknown_stays_unknown() -> None:
    rows = Rows(2, 3)
    rows.add(1.0, [None, 0.0])
    assert rows.read() == [(1.0, None, 0.0)]


def test_sizes_stay_exact_enough() -> None:
    rows = Rows(1, 2)
    rows.add(1.0, [8_123_456_789.0])
    [(_, value)] = rows.read()
    assert value == pytest.approx(8_123_456_789, abs=512)


def test_a_day_takes_at_most_64_kib() -> None:
    history = History()
    values = dict.fromkeys(COLUMNS, 1.0)
    for tick in range(20_000):
        history.add(tick / 10, values, 5.0)
    assert len(history.rows.read()) == ROW_LIMIT
    assert len(history.chart.read()) == CHART_LIMIT
    assert history.rows.size_bytes + history.chart.size_bytes <= 64 * 1024


def test_the_chart_gets_one_row_a_second() -> None:
    history = History()
    for tick in range(100):
        history.add(1000 + tick / 10, {"process.rss_bytes": 7.0}, None)
    chart = history.chart.read()
    assert len(chart) == 10
    assert chart[0] == (1000.0, 7.0, None)


def test_a_clock_set_back_does_not_stop_the_chart() -> None:
    history = History()
    history.add(5000.0, {}, None)
    history.add(1000.0, {}, None)
    assert len(history.chart.read()) == 2
