"""The last samples of one kernel: at full rate for a report, reduced for a chart.

Times are stored as monotonic seconds, so that setting the clock neither drops nor reorders rows.
"""

from __future__ import annotations

import math
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable

from ..memory.limits import ULIMITS

ROW_LIMIT = 1200  # 2 minutes at 10 Hz
ROW_SECONDS = 120.0
CHART_LIMIT = 300  # 10 minutes, a row every 2 seconds
CHART_SECONDS = 600.0
# Values of one kernel, values shared by all kernels of a group, and limits that few processes have.
OWN_COLUMNS = ("process.rss_bytes", "process.children_rss_bytes", "process.swap_bytes")
SHARED_COLUMNS = (
    "cgroup.used_bytes",
    "cgroup.reclaimable_bytes",
    "cgroup.limit_bytes",
    "host.available_bytes",
    "host.swap_used_bytes",
    "host.pressure_some_fraction",
)
ULIMIT_COLUMNS = tuple(name for pair in ULIMITS.values() for name in pair)
COLUMNS = (*OWN_COLUMNS, *SHARED_COLUMNS, *ULIMIT_COLUMNS)
_CHART_EVERY_SECONDS = 1.95
_UNKNOWN = math.nan


class Rows:
    """The newest rows of numbers with their times; older and surplus rows are dropped.

    Args:
        columns: Number of values in a row.
        limit: Maximum number of rows.
        seconds: Maximum age of a row.
    """

    def __init__(self, columns: int, limit: int, seconds: float) -> None:
        # Takes a third of the memory of tuples of floats.
        self._packed = struct.Struct(f"<{1 + columns}d")
        self._seconds = seconds
        self._rows: deque[bytes] = deque(maxlen=limit)
        self._lock = threading.Lock()

    def add(self, moment: float, values: Iterable[float]) -> None:
        """Append a row.

        Args:
            moment: Monotonic seconds, not earlier than the previous row.
            values: NaN = unknown.
        """
        with self._lock:
            while self._rows and self._moment(self._rows[0]) < moment - self._seconds:
                self._rows.popleft()
            self._rows.append(self._packed.pack(moment, *values))

    def _moment(self, row: bytes) -> float:
        moment: float = self._packed.unpack(row)[0]
        return moment

    def read(self) -> list[tuple[float | None, ...]]:
        """All rows, oldest first: Unix seconds by the current clock, then the values; None = unknown."""
        with self._lock:
            rows = [self._packed.unpack(row) for row in self._rows]
        clock = time.time() - time.monotonic()
        return [
            (moment + clock, *(v if math.isfinite(v) else None for v in values))
            for moment, *values in rows
        ]

    def __len__(self) -> int:
        return len(self._rows)


class History:
    """Samples of one kernel."""

    def __init__(self) -> None:
        self.rows = Rows(len(COLUMNS), ROW_LIMIT, ROW_SECONDS)
        self.chart = Rows(1, CHART_LIMIT, CHART_SECONDS)
        self._chart_next = 0.0

    def add(self, moment: float, values: Iterable[float]) -> bool:
        """Append a sample of this monotonic second, in the order of COLUMNS; True if the chart needs a row too."""
        self.rows.add(moment, values)
        return moment >= self._chart_next

    def add_to_chart(self, moment: float, used_bytes: float | None) -> None:
        """Append a row to the chart: the memory that the limit counts (:func:`~..limits.memory_in_use`)."""
        self._chart_next = moment + _CHART_EVERY_SECONDS
        self.chart.add(moment, [_UNKNOWN if used_bytes is None else used_bytes])
