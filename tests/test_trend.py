"""Slope and time left: what the interval holds, and what is no steady growth."""

from __future__ import annotations

import math
import random

import pytest

from jupyter_tfguard.trend import Trend, floors, trend

pytestmark = pytest.mark.quick

SERIES = 400


def walk(chance: random.Random, count: int, drift: float) -> list[tuple[float, float]]:
    """Memory that each place leaves a little more or less of."""
    value, found = 0.0, []
    for place in range(count):
        found.append((float(place), value))
        value += drift + chance.gauss(0, 1)
    return found


def line(chance: random.Random, count: int, slope: float) -> list[tuple[float, float]]:
    """Memory that is scattered about a line."""
    return [(float(n), slope * n + chance.gauss(0, 1)) for n in range(count)]


def found_of(points: list[tuple[float, float]]) -> Trend:
    found = trend(points)
    assert found is not None
    return found


@pytest.mark.parametrize("count", [6, 12, 40])
@pytest.mark.parametrize("make", [walk, line])
def test_the_interval_holds_the_true_slope_as_often_as_it_says(make, count: int) -> None:  # type: ignore[no-untyped-def]
    chance = random.Random(count)
    trends = [found_of(make(chance, count, 2.0)) for _ in range(SERIES)]
    held = sum(t.low <= 2.0 <= t.high for t in trends) / SERIES
    assert held > 0.92


def test_a_walk_without_a_drift_is_seldom_taken_for_growth() -> None:
    chance = random.Random(1)
    trends = [found_of(walk(chance, 20, 0.0)) for _ in range(SERIES)]
    assert sum(t.is_steady_growth for t in trends) / SERIES < 0.03


def test_uneven_gaps_weigh_by_what_they_span() -> None:
    straight = found_of([(n, 3.0 * n) for n in (0, 1, 2, 10, 11, 40, 41)])
    assert straight.slope == pytest.approx(3.0)
    assert straight.low == pytest.approx(3.0)
    assert straight.rise == 123.0


def test_steady_growth_is_found() -> None:
    chance = random.Random(2)
    steady = found_of([(float(n), 312.0 * n + chance.gauss(0, 40)) for n in range(41)])
    assert steady.is_steady_growth
    assert 285 < steady.low < steady.slope < steady.high < 335
    expected, soonest, latest = steady.units_left(now=13_000, limit=16_000) or (0, 0, 0)
    assert soonest < expected < latest
    assert expected == pytest.approx(3000 / steady.slope)


@pytest.mark.parametrize(
    "values",
    [
        [0, 60, 85, 95, 98, 99, 99, 100, 100, 100, 100, 100],
        [0.0, 0, 0, 0, 0, 0, 0, 500, 500, 500, 500, 500],
        [math.log(n) for n in range(1, 41)],
        [0, 90, 10, 95, 5, 91, 9, 96, 8, 92, 7, 95],
        [0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300, 400],
        [100, 90, 80, 70, 60, 50, 40, 30],
        [5.0] * 12,
    ],
    ids=["levels off", "one jump", "logarithm", "saw", "only now begins", "falls", "level"],
)
def test_what_is_no_steady_growth(values: list[float]) -> None:
    found = found_of(list(enumerate(values)))
    assert not found.is_steady_growth


def test_too_few_points_and_points_out_of_order_have_no_trend() -> None:
    assert trend([(n, n) for n in range(5)]) is None
    assert trend([(1.0, 1.0)] * 20) is None
    assert trend([(n, 1.0) for n in (0, 1, 2, 5, 4, 6, 7)]) is None


def test_the_time_left_is_without_end_where_growth_is_not_sure() -> None:
    unsure = Trend(slope=10.0, low=-1.0, high=21.0, rise=100.0, count=8, early=10.0, late=10.0)
    assert unsure.units_left(0, 210) == (21.0, 10.0, math.inf)
    falling = Trend(slope=-1.0, low=-2.0, high=0.5, rise=-9.0, count=9, early=-1.0, late=-1.0)
    assert falling.units_left(0, 210) is None


def test_floors_are_the_lowest_of_each_part() -> None:
    saw = [(float(n), n + (50 if n % 3 else 0)) for n in range(12)]
    assert floors(saw, 4) == [(2.0, 0), (5.0, 3), (8.0, 6), (11.0, 9)]
    assert floors(saw[:2], 4) == saw[:2]
    assert floors([], 4) == []
