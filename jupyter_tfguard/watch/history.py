"""The last samples of one kernel in little memory: finely for a report, coarsely for a chart.

Values are kept as 32-bit floats: exact to 6e-8, that is half a KiB in 8 GiB, in half the room. A busy kernel takes 57 KiB
at most, one that was idle for two minutes 18 KiB. Times are monotonic while they are kept, so that a clock that is set
neither drops rows nor puts them out of order.
"""

from __future__ import annotations

import bisect
import math
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping

from ..limits import ULIMITS

ROW_LIMIT = 1200  # 2 minutes at 10 Hz
ROW_SECONDS = 120.0
CHART_LIMIT = 300  # 10 minutes, a row every 2 seconds
CHART_SECONDS = 600.0
# What differs from kernel to kernel, and what is the same for all kernels of a group.
OWN_COLUMNS = ("process.rss_bytes", "process.children_rss_bytes", "process.swap_bytes")
SHARED_COLUMNS = (
    "cgroup.used_bytes",
    "cgroup.reclaimable_bytes",
    "cgroup.limit_bytes",
    "host.available_bytes",
    "host.swap_used_bytes",
    "host.pressure_some_fraction",
)
COLUMNS = (*OWN_COLUMNS, *SHARED_COLUMNS)
ULIMIT_COLUMNS = tuple(name for pair in ULIMITS.values() for name in pair)
_CHART_EVERY_SECONDS = 1.95
_FIRST_ROWS = 37  # doubled five times it is nearly ROW_LIMIT
_UNKNOWN = math.nan
_LARGEST = 3.4e38  # a 32-bit float holds no more


class Rows:
    """The newest rows of numbers with their times; what is older or too many is dropped, and its room given back.

    Args:
        columns: Number of values in a row.
        limit: Rows kept at most.
        seconds: How long a row is kept at most.
    """

    def __init__(self, columns: int, limit: int, seconds: float) -> None:
        self._row = struct.Struct(f"<d{columns}f")
        self._limit = limit
        self._seconds = seconds
        self._room = min(_FIRST_ROWS, limit)
        self._content = bytearray(self._room * self._row.size)
        self._first = self._count = 0
        self._oldest = 0.0  # not later than the first row
        self._lock = threading.Lock()

    def add(self, moment: float, values: Iterable[float]) -> None:
        """Append a row.

        Args:
            moment: Monotonic seconds, not earlier than that of the row before.
            values: NaN = unknown; what is beyond a 32-bit float becomes so.
        """
        with self._lock:
            if self._oldest < moment - self._seconds:
                self._drop(moment - self._seconds)
            if self._count == self._room:
                if self._room < self._limit:
                    self._resize(min(2 * self._room, self._limit))
                else:
                    self._first = (self._first + 1) % self._room
                    self._count -= 1
            elif self._room > _FIRST_ROWS and self._count < self._room // 4:
                self._resize(max(self._room // 2, _FIRST_ROWS))
            at = (self._first + self._count) % self._room
            known = [v if -_LARGEST <= v <= _LARGEST else _UNKNOWN for v in values]
            self._row.pack_into(self._content, at * self._row.size, moment, *known)
            self._count += 1

    def _drop(self, oldest: float) -> None:
        # The time is the first number of a row.
        while self._count:
            (self._oldest,) = _TIME.unpack_from(self._content, self._first * self._row.size)
            if self._oldest >= oldest:
                return
            self._first = (self._first + 1) % self._room
            self._count -= 1

    def _resize(self, room: int) -> None:
        size = self._row.size
        start, end = self._first * size, (self._first + self._count) * size
        whole = self._room * size
        kept = self._content[start:end] + self._content[: max(0, end - whole)]
        self._content = kept.ljust(room * size, b"\0")
        self._room, self._first = room, 0

    def read(self) -> list[tuple[float | None, ...]]:
        """All rows, oldest first: Unix seconds by the clock of now, then the values; None = unknown."""
        with self._lock:
            return list(self._rows(time.time() - time.monotonic()))

    def _rows(self, clock: float) -> Iterator[tuple[float | None, ...]]:
        for number in range(self._count):
            at = (self._first + number) % self._room
            moment, *values = self._row.unpack_from(self._content, at * self._row.size)
            yield (moment + clock, *(None if v != v else v for v in values))

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Bytes that the numbers take."""
        return len(self._content)


_TIME = struct.Struct("<d")


class History:
    """Samples of one kernel."""

    def __init__(self) -> None:
        self.rows = Rows(len(COLUMNS), ROW_LIMIT, ROW_SECONDS)
        self.chart = Rows(2, CHART_LIMIT, CHART_SECONDS)
        self._chart_next = 0.0

    def add(self, moment: float, values: Iterable[float]) -> bool:
        """Append a sample taken at this monotonic second, in the order of COLUMNS; True when the chart wants a row too."""
        self.rows.add(moment, values)
        return moment >= self._chart_next

    def add_to_chart(self, moment: float, rss_bytes: float, limit_bytes: float | None) -> None:
        """Append a row to the chart."""
        self._chart_next = moment + _CHART_EVERY_SECONDS
        self.chart.add(moment, (rss_bytes, _UNKNOWN if limit_bytes is None else limit_bytes))

    @property
    def size_bytes(self) -> int:
        """Bytes that the numbers take."""
        return self.rows.size_bytes + self.chart.size_bytes


class UlimitHistory:
    """What a process held of the limits of its own, one row per look; takes no room where there is no such limit."""

    def __init__(self) -> None:
        self._rows: Rows | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what :meth:`beside` adds; empty for a process that never had a limit."""
        return () if self._rows is None else ULIMIT_COLUMNS

    def add(self, moment: float, values: Mapping[str, float]) -> None:
        """Append what was seen at this monotonic second."""
        if self._rows is None:
            if not values:
                return
            self._rows = Rows(len(ULIMIT_COLUMNS), ROW_LIMIT, ROW_SECONDS)
        self._rows.add(moment, [values.get(name, _UNKNOWN) for name in ULIMIT_COLUMNS])

    def beside(self, rows: list[tuple[float | None, ...]]) -> list[tuple[float | None, ...]]:
        """Rows of samples with what the look before each of them saw; None = unknown.

        Args:
            rows: Times in Unix seconds first, oldest first.
        """
        if self._rows is None:
            return rows
        looks = self._rows.read()
        moments = [look[0] or 0.0 for look in looks]
        unknown = (None,) * len(ULIMIT_COLUMNS)
        found: list[tuple[float | None, ...]] = []
        for row in rows:
            place = bisect.bisect_right(moments, row[0] or 0.0)
            found.append((*row, *(looks[place - 1][1:] if place else unknown)))
        return found
