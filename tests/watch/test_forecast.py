"""When the limit is foreseen, how soon, and when it is not: made series, and one of a real `import tensorflow`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from jupyter_tfguard.watch.live.forecast import FIRST_SECONDS, HORIZON_SECONDS, Forecast, Forecaster

MIB = 1 << 20
GIB = 1 << 30
LIMIT = 8.0 * GIB
HERTZ = 10
Series = Callable[[float], float]


def run(
    series: Series,
    seconds: float,
    *,
    limit: float = LIMIT,
    own: Series | None = None,
    hertz: float = HERTZ,
) -> list[tuple[float, Forecast | None]]:
    """What is foreseen at each whole second, of a kernel that is older than its first seconds."""
    forecaster = Forecaster(-FIRST_SECONDS)
    found = []
    for number in range(int(seconds * hertz)):
        now = number / hertz
        forecaster.add(now, (own or series)(now), series(now), limit)
        if number % hertz == 0:
            found.append((now, forecaster.now()))
    return found


def first(found: list[tuple[float, Forecast | None]]) -> tuple[float, Forecast] | None:
    return next(((now, forecast) for now, forecast in found if forecast is not None), None)


def ramp(rate: float, start: float = 3.3 * GIB) -> Series:
    return lambda now: start + rate * now


def noisy(series: Series, size: float) -> Series:
    chance = random.Random(7)
    return lambda now: series(now) + chance.uniform(-size, size)


def teeth(series: Series, height: float, period: float) -> Series:
    return lambda now: series(now) + height * (now % period) / period


def steps(height: float, period: float) -> Series:
    return lambda now: 3.3 * GIB + height * math.floor(now / period)


# How long it takes until the limit is foreseen, at most; the figures are what a reader of the panel gets.
FORESEEN: dict[str, tuple[Series, float]] = {
    "fast: 1 GiB in 20 s": (ramp(50 * MIB), 23),
    "9 MiB/s, 13 min before the limit": (ramp(9 * MIB), 85),
    "20 MiB/s with noise of 50 MiB": (noisy(ramp(20 * MIB), 50 * MIB), 60),
    "batches of 300 MiB on a floor that rises": (teeth(ramp(20 * MIB), 300 * MIB, 0.7), 45),
    "epochs of 4 s on a floor that rises": (teeth(ramp(20 * MIB), 300 * MIB, 4), 65),
    "an array of 100 MiB every 3 s": (steps(100 * MIB, 3), 65),
    "exponential, half as much again in 20 s": (lambda now: 3.3 * GIB * 1.5 ** (now / 20), 30),
    "a load of 2 GiB, then 30 MiB/s": (
        lambda now: GIB + (2 * GIB if now > 20 else 0) + max(0, now - 20) * 30 * MIB,
        55,
    ),
}


@pytest.mark.parametrize("name", FORESEEN)
def test_a_rise_that_leads_to_the_limit_is_foreseen_in_time(name: str) -> None:
    series, latest = FORESEEN[name]
    seen = first(run(series, latest + 5))
    assert seen is not None
    now, forecast = seen
    assert now <= latest
    assert forecast.low > 0
    assert forecast.low <= forecast.bytes_per_second <= forecast.high
    assert forecast.seconds_left <= 10 * now


@pytest.mark.parametrize("rate", [50 * MIB, 9 * MIB, 4 * MIB])
def test_the_seconds_left_are_those_that_are_left(rate: float) -> None:
    whole = (LIMIT - 3.3 * GIB) / rate
    for now, forecast in run(noisy(ramp(rate), MIB), min(whole - 1, 400)):
        if forecast is not None:
            assert forecast.seconds_left == pytest.approx(whole - now, rel=0.12, abs=3)
            assert forecast.bytes_per_second == pytest.approx(rate, rel=0.1)


def plateau_after(ramp_seconds: float, rate: float) -> Series:
    return lambda now: 3.3 * GIB + rate * min(now, ramp_seconds)


QUIET: dict[str, Series] = {
    "level": lambda now: 7.9 * GIB,
    "level with noise": noisy(lambda now: 7.5 * GIB, 200 * MIB),
    "batches that come and go": teeth(lambda now: 5 * GIB, 2 * GIB, 0.7),
    "batches of 4 s that come and go": teeth(lambda now: 5 * GIB, 2 * GIB, 4),
    "a single step": lambda now: GIB + (5 * GIB if now > 30 else 0),
    "a load of 4 GiB in 12 s": lambda now: GIB + 4 * GIB * min(1, max(0, (now - 30) / 12)),
    "an import of 600 MiB in 25 s": lambda now: 60 * MIB + 24 * MIB * min(now, 25),
    "a leak of days": ramp(100 << 10),
    "a rise while most is free": lambda now: 9 * MIB * min(now, 300),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_leads_to_no_limit_brings_no_forecast(name: str) -> None:
    assert first(run(QUIET[name], 400)) is None


def test_memory_that_wanders_brings_hardly_a_forecast() -> None:
    foretold = 0
    for seed in range(40):
        chance = random.Random(seed)
        walk = [6.0 * GIB]
        for _ in range(300 * HERTZ):
            walk.append(walk[-1] + chance.gauss(0, 3 * MIB))
        seen = first(run(lambda now, walk=walk: walk[int(now * HERTZ)], 300))  # type: ignore[misc]
        foretold += seen is not None
    assert foretold <= 1  # of 200 minutes


# A kernel that imports TensorFlow 2.21 and makes a first tensor, MiB every half second.
IMPORT = [62, 62, 202, 351, 390, 416, 447, 489, 532, 569, 581, 581, 581]


@pytest.mark.parametrize("slowness", [1, 3, 6])
@pytest.mark.parametrize("limit", [1.5 * GIB, 2 * GIB, 4 * GIB])
def test_the_import_of_tensorflow_brings_no_forecast(slowness: int, limit: float) -> None:
    def series(now: float) -> float:
        place = max(0.0, now - 12) / slowness * 2
        before, part = min(int(place), len(IMPORT) - 2), place % 1
        if place >= len(IMPORT) - 1:
            return IMPORT[-1] * MIB
        return (IMPORT[before] + part * (IMPORT[before + 1] - IMPORT[before])) * MIB

    assert first(run(series, 120, limit=limit)) is None


def test_the_first_seconds_of_a_process_do_not_count() -> None:
    forecaster = Forecaster(100.0)
    for number in range(int((FIRST_SECONDS + 12) * HERTZ)):
        now = 100.0 + number / HERTZ
        forecaster.add(now, GIB, 4 * GIB + number * 10 * MIB, LIMIT)
        assert forecaster.now() is None


def test_epochs_of_a_minute_that_give_back_all_are_foreseen_once_at_most() -> None:
    found = run(teeth(lambda now: 3 * GIB, 4 * GIB, 60), 400)
    assert all(forecast is None for now, forecast in found if now > 75)


def test_a_forecast_ends_soon_after_the_rise() -> None:
    found = dict(run(plateau_after(60, 50 * MIB), 200))
    assert found[59] is not None
    assert all(found[now] is None for now in range(90, 200))


def test_memory_given_back_ends_the_forecast_at_once() -> None:
    found = dict(run(lambda now: 3.3 * GIB + (50 * MIB * now if now < 60 else 0), 80))
    assert found[59] is not None
    assert all(found[now] is None for now in range(63, 80))


def test_a_rise_by_others_is_not_foretold_for_this_kernel() -> None:
    assert first(run(ramp(50 * MIB), 100, own=lambda now: GIB)) is None


def test_an_unwatched_gap_begins_again() -> None:
    forecaster = Forecaster(-FIRST_SECONDS)
    for start in (0.0, 60.0):
        for number in range(10 * HERTZ):
            now = start + number / HERTZ
            held = 4 * GIB + now * 30 * MIB
            forecaster.add(now, held, held, LIMIT)
            assert forecaster.now() is None


def test_another_limit_begins_again() -> None:
    forecaster = Forecaster(-FIRST_SECONDS)
    for number in range(25 * HERTZ):
        forecaster.add(
            number / HERTZ, 4 * GIB + number * 5 * MIB, 4 * GIB + number * 5 * MIB, LIMIT
        )
    assert forecaster.now() is not None
    forecaster.add(25.0, 2 * GIB, 2 * GIB, 2 * LIMIT)
    assert forecaster.now() is None


def test_nothing_is_foretold_beyond_an_hour() -> None:
    found = run(ramp(MIB), 420, hertz=1)
    assert first(found) is None
    assert (LIMIT - 3.3 * GIB) / MIB > HORIZON_SECONDS
