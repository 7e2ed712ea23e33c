"""Samples as records, and their summaries: minimum, maximum and last value of a stretch of time.

There are three resolutions, for a crash, an epoch and a day: every sample of the last minutes, a summary of each
second of the last hour, and a summary of each minute of the last week.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..metrics import Metric, Sample
from .record_writer import RecordWriter
from .records import Record, RecordFile, record_bytes_for

SAMPLE = 1
SUMMARY = 2
# Year 5138. A later time is damage, and the datetime module cannot represent all of them.
_LAST_MOMENT = 1e11
_PARTS = 3


def sample_bytes(metrics: Sequence[Metric]) -> int:
    """Size of a record that holds one sample."""
    return record_bytes_for(8 * len(metrics))


def summary_bytes(metrics: Sequence[Metric]) -> int:
    """Size of a record that holds one summary."""
    return record_bytes_for(_PARTS * 4 * len(metrics))


def sample_type(metrics: Sequence[Metric]) -> dict[int, dict[str, Any]]:
    """The header's entry for samples: one f64 per column, NaN is unknown."""
    return {SAMPLE: {"name": "sample", "number": "f64", "columns": _columns(metrics)}}


def summary_type(metrics: Sequence[Metric]) -> dict[int, dict[str, Any]]:
    """The header's entry for summaries: all minima, all maxima, all last values, as f32, NaN is unknown."""
    return {
        SUMMARY: {
            "name": "summary",
            "number": "f32",
            "parts": ["min", "max", "last"],
            "columns": _columns(metrics),
        }
    }


def _columns(metrics: Sequence[Metric]) -> list[dict[str, str]]:
    return [{"name": metric.name, "unit": metric.unit.value} for metric in metrics]


# --- writing


def row(columns: Sequence[str], values: Mapping[str, float]) -> list[float]:
    """The values in the order of the columns; NaN if unknown."""
    return [values.get(name, math.nan) for name in columns]


def write_sample(writer: RecordWriter, sample: Sample, numbers: list[float]) -> None:
    """Write a sample. `numbers` are its values as a row. Raises OSError if the write fails."""
    payload = _packed("d", numbers)
    writer.write(SAMPLE, payload, sample.sequence, monotonic=sample.monotonic, wall=sample.time)


def write_summary(writer: RecordWriter, stretch: Stretch) -> None:
    """Write a stretch. Raises OSError if the write fails."""
    payload = _packed("f", [*stretch.minimum, *stretch.maximum, *stretch.last])
    writer.write(SUMMARY, payload, monotonic=stretch.monotonic, wall=stretch.time)


def _packed(kind: str, numbers: list[float]) -> bytes:
    found = array(kind, numbers)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def _unpacked(kind: str, payload: bytes, count: int) -> array[float] | None:
    found: array[float] = array(kind)
    size = count * found.itemsize
    if len(payload) < size:
        return None
    found.frombytes(payload[:size])
    if sys.byteorder == "big":
        found.byteswap()
    return found


@dataclass(slots=True)
class Stretch:
    """A stretch of time. Each list has one number per column; NaN is unknown. One sample is a stretch too.

    Attributes:
        monotonic, time: Times of the last sample in it.
        minimum, maximum, last: The values.
    """

    monotonic: float
    time: float
    minimum: list[float]
    maximum: list[float]
    last: list[float]


class Stretches:
    """Groups rows into stretches of equal length. The wall clock may jump, so the monotonic clock decides.

    Args:
        seconds: Length of a stretch.
        on_end: Called with each stretch when the next one begins.
    """

    def __init__(self, seconds: float, on_end: Callable[[Stretch], None]) -> None:
        self._seconds = seconds
        self._on_end = on_end
        self._number: float | None = None
        self._now: Stretch | None = None

    def add(self, found: Stretch) -> None:
        """Add a sample or a shorter stretch to its stretch."""
        number = found.monotonic // self._seconds
        before = self._now
        if before is None or number != self._number:
            self._number, self._now = number, found
            if before is not None:
                self._on_end(before)
            return
        before.monotonic, before.time = found.monotonic, found.time
        # x != x is true for NaN only. New lists, because the three lists of one sample may be the same object.
        before.minimum = [
            a if a <= b or b != b else b for a, b in zip(before.minimum, found.minimum, strict=True)
        ]
        before.maximum = [
            a if a >= b or b != b else b for a, b in zip(before.maximum, found.maximum, strict=True)
        ]
        before.last = [a if b != b else b for a, b in zip(before.last, found.last, strict=True)]


# --- reading


class StretchSummary(NamedTuple):
    """Minimum, maximum and last value of each metric in one stretch of time; relative error at most 6e-8.

    Attributes:
        sequence, monotonic, time: From the record; the times are those of the last sample in the stretch.
    """

    sequence: int
    monotonic: float
    time: float
    columns: tuple[str, ...]
    # One array instead of three dicts: a week of minutes takes 3 MB instead of 40.
    numbers: array[float]

    @property
    def minimum(self) -> dict[str, float]:
        """Lowest value per metric name, without unknown values."""
        return self._part(0)

    @property
    def maximum(self) -> dict[str, float]:
        """Highest value per metric name, without unknown values."""
        return self._part(1)

    @property
    def last(self) -> dict[str, float]:
        """Last known value per metric name, without unknown values."""
        return self._part(2)

    def _part(self, number: int) -> dict[str, float]:
        count = len(self.columns)
        values = self.numbers[number * count : (number + 1) * count]
        return {n: v for n, v in zip(self.columns, values, strict=True) if math.isfinite(v)}


def read_samples(file: RecordFile) -> list[Sample]:
    """The samples of a file, oldest first."""
    columns = _column_names(file, SAMPLE, "f64")
    found = []
    for record in file.of_type(SAMPLE) if columns else ():
        numbers = _unpacked("d", record.payload, len(columns))
        if numbers is not None and is_moment(record):
            known = {n: v for n, v in zip(columns, numbers, strict=True) if v == v}
            found.append(Sample(record.sequence, record.monotonic, record.time, known))
    return found


def read_summaries(file: RecordFile) -> list[StretchSummary]:
    """The summaries of a file, oldest first."""
    columns = _column_names(file, SUMMARY, "f32")
    found = []
    for record in file.of_type(SUMMARY) if columns else ():
        numbers = _unpacked("f", record.payload, _PARTS * len(columns))
        if numbers is not None and is_moment(record):
            found.append(
                StretchSummary(record.sequence, record.monotonic, record.time, columns, numbers)
            )
    return found


def is_moment(record: Record) -> bool:
    """True if the record's times are plausible. A forged record can have a valid CRC."""
    return 0 <= record.time < _LAST_MOMENT and abs(record.monotonic) < _LAST_MOMENT


def _column_names(file: RecordFile, number: int, numbers: str) -> tuple[str, ...]:
    fields = file.type_named(number)
    columns = fields.get("columns")
    if fields.get("number") != numbers or not isinstance(columns, list):
        return ()
    names = [column.get("name") for column in columns if isinstance(column, dict)]
    if len(names) != len(columns) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(str(name) for name in names)
