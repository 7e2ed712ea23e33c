"""The last samples of one kernel in a fixed amount of memory: finely for a report, coarsely for a chart.

Values are kept as 32-bit floats: exact to 6e-8, that is half a KiB in 8 GiB, in half the room.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Iterator, Mapping

ROW_LIMIT = 1200  # 2 minutes at 10 Hz
CHART_LIMIT = 600  # 10 minutes at 1 Hz
COLUMNS = (
    "process.rss_bytes",
    "process.children_rss_bytes",
    "process.swap_bytes",
    "cgroup.used_bytes",
    "cgroup.reclaimable_bytes",
    "cgroup.limit_bytes",
    "host.available_bytes",
    "host.swap_used_bytes",
    "host.pressure_some_fraction",
)


class Rows:
    """The newest rows of numbers, with their times; older ones are overwritten.

    Args:
        columns: Number of values in a row.
        limit: Rows kept.
    """

    def __init__(self, columns: int, limit: int) -> None:
        self._columns = columns
        self._limit = limit
        self._times = array("d")
        self._values = array("f")
        self._next = 0
        self._lock = threading.Lock()

    def add(self, time: float, values: list[float | None]) -> None:
        """Append a row; None is kept as unknown."""
        row = array("f", (math.nan if value is None else value for value in values))
        with self._lock:
            if len(self._times) < self._limit:
                self._times.append(time)
                self._values.extend(row)
                return
            self._times[self._next] = time
            self._values[self._next * self._columns : (self._next + 1) * self._columns] = row
            self._next = (self._next + 1) % self._limit

    def read(self) -> list[tuple[float | None, ...]]:
        """All rows, oldest first: time, then the values; None = unknown."""
        with self._lock:
            return list(self._rows())

    def _rows(self) -> Iterator[tuple[float | None, ...]]:
        count = len(self._times)
        for offset in range(count):
            position = (self._next + offset) % count
            start = position * self._columns
            values = self._values[start : start + self._columns]
            yield (self._times[position], *(None if math.isnan(v) else v for v in values))

    @property
    def size_bytes(self) -> int:
        """Bytes that the numbers take."""
        return sum(len(part) * part.itemsize for part in (self._times, self._values))


class History:
    """Samples of one kernel."""

    def __init__(self) -> None:
        self.rows = Rows(len(COLUMNS), ROW_LIMIT)
        self.chart = Rows(2, CHART_LIMIT)
        self._chart_next = 0.0

    def add(self, time: float, values: Mapping[str, float], limit_bytes: float | None) -> None:
        """Append a sample; to the chart at most once a second."""
        self.rows.add(time, [values.get(name) for name in COLUMNS])
        if time >= self._chart_next or time < self._chart_next - 10:  # the clock was set back
            self._chart_next = time + 0.95
            self.chart.add(time, [values.get("process.rss_bytes"), limit_bytes])
