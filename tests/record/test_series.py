"""Samples and their summaries: unknown is not zero, and minimum, maximum and last are those of the stretch."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.metrics import Metric, Sample, Unit
from jupyter_tfguard.record import series
from jupyter_tfguard.record.record_writer import RecordWriter
from jupyter_tfguard.record.records import RecordFile, read_records
from jupyter_tfguard.record.series import SAMPLE, SUMMARY, Stretch, Stretches

pytestmark = pytest.mark.quick

METRICS = (
    Metric("process.rss_bytes", "Resident memory", Unit.BYTES, "statm"),
    Metric("host.available_bytes", "Available", Unit.BYTES, "meminfo"),
)
NAN = math.nan


def ring(path: Path, *, summaries: bool = False) -> RecordWriter:
    size = series.summary_bytes(METRICS) if summaries else series.sample_bytes(METRICS)
    types = series.summary_type(METRICS) if summaries else series.sample_type(METRICS)
    path.touch()
    return RecordWriter(path, name="x", record_bytes=size, capacity=100, types=types)


def read(path: Path) -> RecordFile:
    return read_records(path.read_bytes())


def test_an_unread_metric_is_unknown_not_zero(tmp_path: Path) -> None:
    writer = ring(tmp_path / "ring")
    sample = Sample(7, 1.0, 2.0, {"process.rss_bytes": 5.0})
    names = [metric.name for metric in METRICS]
    series.write_sample(writer, sample, series.row(names, sample.values))
    (found,) = series.read_samples(read(tmp_path / "ring"))
    assert found == sample
    assert found.get("host.available_bytes") is None


def test_bytes_of_memory_are_exact_in_samples_and_nearly_so_in_summaries(tmp_path: Path) -> None:
    writer = ring(tmp_path / "ring", summaries=True)
    much = float(3 * 2**40 + 12345)
    series.write_summary(writer, Stretch(1.0, 2.0, [1.0, NAN], [much, NAN], [2.0, NAN]))
    (found,) = series.read_summaries(read(tmp_path / "ring"))
    assert found.maximum["process.rss_bytes"] == pytest.approx(much, rel=6e-8)
    assert found.minimum == {"process.rss_bytes": 1.0}
    assert found.last == {"process.rss_bytes": 2.0}


def test_a_number_beyond_f32_is_unknown(tmp_path: Path) -> None:
    writer = ring(tmp_path / "ring", summaries=True)
    series.write_summary(writer, Stretch(1.0, 2.0, [1e300, 1.0], [1e300, 1.0], [1e300, 1.0]))
    (found,) = series.read_summaries(read(tmp_path / "ring"))
    assert found.maximum == {"host.available_bytes": 1.0}


def rows(stretches: list[Stretch]) -> list[tuple[list[float], list[float], list[float]]]:
    return [(s.minimum, s.maximum, s.last) for s in stretches]


def point(monotonic: float, *numbers: float, wall: float = 0.0) -> Stretch:
    return Stretch(monotonic, wall, list(numbers), list(numbers), list(numbers))


def test_a_stretch_has_minimum_maximum_and_last_known_value() -> None:
    ended: list[Stretch] = []
    seconds = Stretches(1.0, ended.append)
    for monotonic, value in ((5.0, 3.0), (5.3, 9.0), (5.6, 1.0), (5.9, NAN)):
        seconds.add(point(monotonic, value))
    assert ended == []
    seconds.add(point(6.0, 4.0))
    assert rows(ended) == [([1.0], [9.0], [1.0])]
    assert ended[0].monotonic == 5.9


def test_a_metric_unknown_at_first_or_all_along() -> None:
    ended: list[Stretch] = []
    seconds = Stretches(1.0, ended.append)
    for value in (NAN, 2.0, NAN):
        seconds.add(point(1.0, value, NAN))
    seconds.add(point(2.0, 1.0, 1.0))
    assert [p[0] for p in rows(ended)[0]] == [2.0, 2.0, 2.0]
    assert all(math.isnan(p[1]) for p in rows(ended)[0])


def test_stretches_go_by_the_monotonic_clock_though_the_wall_clock_jumps() -> None:
    ended: list[Stretch] = []
    seconds = Stretches(1.0, ended.append)
    for monotonic, wall in ((1.1, 1e9), (1.5, 1e9 - 86400), (2.1, 1e9 + 86400), (4.0, 0.0)):
        seconds.add(point(monotonic, 1.0, wall=wall))
    assert [s.time for s in ended] == [1e9 - 86400, 1e9 + 86400]


def test_minutes_of_seconds_are_minutes_of_samples() -> None:
    chance = random.Random(4)
    minutes: list[Stretch] = []
    whole = Stretches(60.0, minutes.append)
    seconds = Stretches(1.0, whole.add)
    samples: dict[int, list[float]] = {}
    moment = 0.0
    while moment < 600:
        value = chance.choice([NAN, chance.uniform(0, 1e10)])
        samples.setdefault(int(moment // 60), []).append(value)
        seconds.add(point(moment, value))
        moment += chance.uniform(0.05, 1.7)
    assert len(minutes) >= 8
    for number, found in enumerate(minutes):
        known = [value for value in samples[number] if not math.isnan(value)]
        assert (found.minimum, found.maximum, found.last) == (
            [min(known)],
            [max(known)],
            [known[-1]],
        )


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"number": "f16", "columns": [{"name": "a"}]},
        {"number": "f64", "columns": None},
        {"number": "f64", "columns": []},
        {"number": "f64", "columns": [7]},
        {"number": "f64", "columns": [{"name": 7}]},
        {"number": "f64", "columns": [{"name": str(n)} for n in range(100)]},
    ],
)
def test_columns_that_make_no_sense_give_no_samples(tmp_path: Path, told: Any) -> None:
    writer = ring(tmp_path / "ring")
    writer.write(SAMPLE, b"\0" * 16)
    writer.write(SUMMARY, b"\0" * 24)
    file = read(tmp_path / "ring")
    told32 = told | {"number": "f32"} if told and told["number"] == "f64" else told
    file.header["types"] = {"1": told, "2": told32}
    assert series.read_samples(file) == []
    assert series.read_summaries(file) == []


def test_a_record_too_short_for_its_columns_is_left_out(tmp_path: Path) -> None:
    writer = ring(tmp_path / "ring")
    writer.write(SAMPLE, b"\0" * 15)
    writer.write(SAMPLE, b"\0" * 16)
    writer.write(SAMPLE, b"\0" * 16, wall=float("nan"))
    assert [s.sequence for s in series.read_samples(read(tmp_path / "ring"))] == [2]
