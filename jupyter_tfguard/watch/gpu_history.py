"""The last values of one GPU, or of one kernel on it, in little memory: each second for ten minutes, each minute for a day."""

from __future__ import annotations

import math
import time

from .history import Rows

COLUMNS = ("own_bytes", "memory_used_bytes", "temperature_celsius")
_SECOND_ROWS, _SECONDS = 600, 600.0
_MINUTE_ROWS, _MINUTES_SECONDS = 1440, 86400.0
_MINUTE_SECONDS = 60.0
_UNKNOWN = math.nan

Row = tuple[float | None, ...]


class GpuHistory:
    """Rows of COLUMNS, oldest first. 20 bytes a row: 40 KiB after a day."""

    def __init__(self) -> None:
        self._fine = Rows(len(COLUMNS), _SECOND_ROWS, _SECONDS)
        self._coarse = Rows(len(COLUMNS), _MINUTE_ROWS, _MINUTES_SECONDS)
        self._minute: tuple[float, list[float]] | None = None
        self._last = -math.inf

    def add(
        self, moment: float, own: float | None, used: float | None, celsius: float | None
    ) -> None:
        """Append a row, unless one was added within the same half second.

        Args:
            moment: Monotonic seconds.
            own: Bytes that the kernel holds. used: bytes in use on the card. celsius: its temperature.
        """
        if moment - self._last < 0.5:
            return
        self._last = moment
        row = [_UNKNOWN if value is None else float(value) for value in (own, used, celsius)]
        self._fine.add(moment, row)
        if self._minute is None or moment - self._minute[0] >= _MINUTE_SECONDS:
            if self._minute is not None:
                self._coarse.add(*self._minute)
            self._minute = (moment, row)
        else:
            # What a loop leaves behind shows in its lowest use, what heat does in the highest.
            lowest, _, hottest = self._minute[1]
            kept = [_lower(lowest, row[0]), row[1], -_lower(-hottest, -row[2])]
            self._minute = (self._minute[0], kept)

    def rows(self) -> list[Row]:
        """Unix seconds, then the values; None = unknown."""
        fine, coarse = self._fine.read(), self._coarse.read()
        begin = fine[0][0] if fine else time.time()
        return [row for row in coarse if (row[0] or 0.0) < (begin or 0.0)] + fine

    def latest(self, seconds: float) -> list[Row]:
        """The rows of the last so many seconds."""
        since = time.time() - seconds
        return [row for row in self._fine.read() if (row[0] or 0.0) >= since]


def _lower(first: float, second: float) -> float:
    if math.isnan(first) or second < first:
        return second
    return first
