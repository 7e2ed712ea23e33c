"""Compact history of one GPU, or of one kernel on it: a row a second for ten minutes, a row a minute for a day."""

from __future__ import annotations

import math

from ..history import Rows

COLUMNS = ("own_bytes", "memory_used_bytes", "temperature_celsius")
_SECOND_ROWS, _SECONDS = 600, 600.0
_MINUTE_ROWS, _MINUTES_SECONDS = 1440, 86400.0
_MINUTE_SECONDS = 60.0
_END_SECONDS = 120.0

Row = tuple[float | None, ...]


class GpuHistory:
    """Rows of COLUMNS, oldest first. 32 bytes per row: 64 KiB after a day."""

    def __init__(self) -> None:
        self._fine = Rows(len(COLUMNS), _SECOND_ROWS, _SECONDS)
        self._coarse = Rows(len(COLUMNS), _MINUTE_ROWS, _MINUTES_SECONDS)
        self._minute: tuple[float, list[float]] | None = None

    def add(
        self, moment: float, own: float | None, used: float | None, celsius: float | None
    ) -> None:
        """Append a row.

        Args:
            moment: Monotonic seconds.
            own: Bytes held by the kernel. used: bytes in use on the card. celsius: temperature of the card.
        """
        row = [math.nan if value is None else float(value) for value in (own, used, celsius)]
        self._fine.add(moment, row)
        if self._minute is None or moment - self._minute[0] >= _MINUTE_SECONDS:
            if self._minute is not None:
                self._coarse.add(*self._minute)
            self._minute = (moment, row)
        elif row[0] < self._minute[1][0] or math.isnan(self._minute[1][0]):
            # Keep the minimum: it shows what a loop leaves behind.
            self._minute = (self._minute[0], row)

    def recent(self, seconds: float = _SECONDS) -> list[Row]:
        """The rows of the last `seconds`: Unix seconds, then the values; None = unknown."""
        rows = self._fine.read()
        newest = rows[-1][0] or 0.0 if rows else 0.0
        return [row for row in rows if newest - (row[0] or 0.0) <= seconds]

    def rows(self, minutes: int = _MINUTE_ROWS) -> list[Row]:
        """At most `minutes` rows, one a minute, then a row a second for the last two minutes; see :meth:`recent`."""
        end = self.recent(_END_SECONDS)
        begin = (end[0][0] or 0.0) if end else 0.0
        return [row for row in self._coarse.read() if (row[0] or 0.0) < begin][-minutes:] + end
