"""Types of a metric and of a sample of metrics."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple


class Unit(enum.Enum):
    """Base unit of a metric. Percent exists only on screens."""

    BYTES = "bytes"
    SECONDS = "seconds"
    FRACTION = "fraction"
    COUNT = "count"
    CELSIUS = "celsius"
    WATTS = "watts"


class Metric(NamedTuple):
    """A named number.

    Attributes:
        name: ``room.what_unit``, for instance ``process.rss_bytes``.
        title: Name for users.
        unit: Base unit of the value.
        source: The file and field, or the call, that the value is read from.
    """

    name: str
    title: str
    unit: Unit
    source: str


class Sample(NamedTuple):
    """All metrics at one moment.

    Attributes:
        sequence: Increases by one with each sample of one writer; orders samples if clocks jump.
        monotonic: ``time.monotonic()``, seconds; comparable within one boot.
        time: Wall clock, Unix seconds UTC; for display.
        values: Value per metric name. A metric that could not be read is absent, never 0.
    """

    sequence: int
    monotonic: float
    time: float
    values: Mapping[str, float]

    def get(self, name: str) -> float | None:
        """The metric's value; None = unknown."""
        return self.values.get(name)
