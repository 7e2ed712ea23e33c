"""The last values of one GPU, or of one kernel on it, in little memory: each second for ten minutes, each minute for a day."""

from __future__ import annotations

import math

from .history import Rows

COLUMNS = ("own_bytes", "memory_used_bytes", "temperature_celsius")
_SECOND_ROWS, _SECONDS = 600, 600.0
_MINUTE_ROWS, _MINUTES_SECONDS = 1440, 86400.0
_MINUTE_SECONDS = 60.0
_EACH_SECONDS, _THINNED = 120.0, 5
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

    def rows(self, minutes: int = _MINUTE_ROWS) -> list[Row]:
        """Unix seconds, then the values; None = unknown. Each second of the last two minutes, some before, then minutes.

        Args:
            minutes: How many of these at most.
        """
        fine, coarse = self._fine.read(), self._coarse.read()
        newest = fine[-1][0] or 0.0 if fine else 0.0
        kept = [
            row
            for number, row in enumerate(fine)
            if not number % _THINNED or newest - (row[0] or 0.0) <= _EACH_SECONDS
        ]
        begin = kept[0][0] if kept else None
        earlier = [row for row in coarse if begin is None or (row[0] or 0.0) < (begin or 0.0)]
        return earlier[-minutes:] + kept

    def latest(self) -> list[Row]:
        """The rows of the last two minutes."""
        fine = self._fine.read()
        newest = fine[-1][0] or 0.0 if fine else 0.0
        return [row for row in fine if newest - (row[0] or 0.0) <= _EACH_SECONDS]


def _lower(first: float, second: float) -> float:
    if math.isnan(first) or second < first:
        return second
    return first
