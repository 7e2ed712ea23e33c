"""Forecasts when a kernel's memory reaches its binding limit, from its growth so far; only if that is reliable.

The forecast uses the running maximum of the floor, the lowest use in each second. Temporary memory of batches does not
raise this maximum; loading an array, or an epoch that frees its memory, raises it at most once. The forecast reaches
ten times as far as the observed growth, and none is made while most of the limit is free, so that an import or a load
does not cause one.

Not covered: GPU memory, which TensorFlow's allocator takes in pieces that double; growth caused by other processes in
the container.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...memory.limits import Limit
from ...trend import Trend, trend

HORIZON_SECONDS = 3600.0
FORESEEN_TIMES = 10.0  # the observed duration of the growth
KEPT_SECONDS = 360.0  # enough for the whole horizon
WINDOWS_SECONDS = (20.0, 40.0, 80.0, 160.0, KEPT_SECONDS)
FIRST_SECONDS = 10.0  # ignored after the process started: imports
_BIN_SECONDS = 1.0
_GAP_SECONDS = 8.0
_PARTS = 15
_FAR_FRACTION = 0.4  # no forecast while less of the limit is in use
# The lower bound of the slope's confidence interval must be at least this fraction of the slope.
_SURE_FRACTION = 0.5
# Of the whole slope, in each quarter of a window: excludes growth that just began or levels off.
_QUARTER_FRACTION = 0.4
_OWN_FRACTION = 0.5  # of the growth must be the kernel's
_FALL_FRACTION = 0.25


@dataclass(frozen=True, slots=True)
class Forecast:
    """When the limit will be reached.

    Attributes:
        seconds_left: Seconds until then.
        bytes_per_second: Growth of the memory that the limit counts. low, high: 95 % confidence interval.
    """

    seconds_left: float
    bytes_per_second: float
    low: float
    high: float


@dataclass(slots=True)
class _Second:
    """One second of samples: minimum of the kernel's memory, minimum and maximum in use."""

    time: float
    own: float
    floor: float
    top: float


class Forecaster:
    """Follows the growth of one kernel. Pass it each sample while the kernel is busy.

    Args:
        began: Monotonic seconds when the process was first seen.
    """

    def __init__(self, began: float) -> None:
        self._from = began + FIRST_SECONDS
        self._seconds: deque[_Second] = deque(maxlen=int(KEPT_SECONDS / _BIN_SECONDS) + 1)
        self._limit = 0.0
        self._found: Forecast | None = None
        self._found_at: float | None = None
        self._lock = threading.Lock()

    def take(self, moment: float, values: Mapping[str, float], limit: Limit | None) -> None:
        """Add a sample from the collectors; ignored if the memory in use is unknown.

        Args:
            moment: Monotonic seconds.
            values: Metrics of the process, the group and the machine; NaN or left out where unknown.
            limit: The binding limit.
        """
        used = None if limit is None else limit.used(values)
        if limit is None or used is None:
            return
        own = used  # a limit of the process counts only the kernel's memory
        if not limit.is_ulimit:
            children = values.get("process.children_rss_bytes", math.nan)
            own = values["process.rss_bytes"] + (0.0 if math.isnan(children) else children)
        self.add(moment, own, used, limit.size_bytes)

    def add(self, moment: float, own: float, used: float, limit: float) -> None:
        """Add a sample. Cheap: most samples change one number.

        Args:
            moment: Monotonic seconds.
            own: Bytes that the kernel and its children hold.
            used: Bytes in use that the limit counts, without reclaimable memory. limit: bytes.
        """
        if moment < self._from:
            return
        with self._lock:
            last = self._seconds[-1] if self._seconds else None
            if last is not None and (
                not 0 <= moment - last.time <= _GAP_SECONDS or limit != self._limit
            ):
                self._seconds.clear()
                last = None
            self._limit = limit
            if last is None or moment - last.time >= _BIN_SECONDS:
                self._seconds.append(_Second(moment, own, used, used))
            else:
                last.own = min(last.own, own)
                last.floor, last.top = min(last.floor, used), max(last.top, used)

    def now(self) -> Forecast | None:
        """The forecast, computed at most once a second; None unless the limit is reliably reached within an hour."""
        with self._lock:
            newest = self._seconds[-1] if self._seconds else None
            time = None if newest is None else newest.time
            if time != self._found_at:
                self._found_at = time
                is_far = newest is None or newest.top < _FAR_FRACTION * self._limit
                # The newest second is incomplete: its floor may still fall.
                self._found = None if is_far else forecast(list(self._seconds)[:-1], self._limit)
            return self._found


def forecast(seconds: Sequence[_Second], limit: float) -> Forecast | None:
    """The forecast from a series of seconds, oldest first."""
    if not seconds:
        return None
    ground = _new_ground([second.floor for second in seconds])
    newest = seconds[-1].time
    for window in WINDOWS_SECONDS:
        start = next(i for i, s in enumerate(seconds) if s.time >= newest - window)
        seen = newest - seconds[start].time
        if seen < window - 2 * _BIN_SECONDS:
            return None  # not observed long enough
        rise = _steady_rise(seconds[start:], ground[start:])
        if rise is None:
            continue
        latest = seconds[-max(1, (len(seconds) - start) // 4) :]
        room = limit - max(second.top for second in latest)
        left = max(0.0, room) / rise.slope
        if left <= min(HORIZON_SECONDS, FORESEEN_TIMES * seen):
            return Forecast(left, rise.slope, rise.low, rise.high)
    return None


def _new_ground(floors: Sequence[float]) -> list[float]:
    highest, found = 0.0, []
    for floor in floors:
        highest = max(highest, floor)
        found.append(highest)
    return found


def _steady_rise(seconds: Sequence[_Second], ground: Sequence[float]) -> Trend | None:
    """The trend of a window if it rises reliably, steadily and until now, because of the kernel; else None."""
    step = max(1, (len(seconds) - 1) // _PARTS)
    picked = range(len(seconds) - 1, -1, -step)[::-1]
    found = trend([(seconds[i].time, ground[i]) for i in picked])
    if found is None or not found.is_steady_growth or found.low < _SURE_FRACTION * found.slope:
        return None
    places = [round(part * (len(seconds) - 1) / 4) for part in range(5)]
    for start, end in itertools.pairwise(places):
        span = seconds[end].time - seconds[start].time
        if ground[end] - ground[start] < _QUARTER_FRACTION * found.slope * span:
            return None
    if seconds[-1].own - seconds[0].own < _OWN_FRACTION * found.rise:
        return None
    # A larger drop below the running maximum than before means that the kernel frees the memory.
    falls = [high - second.floor for high, second in zip(ground, seconds, strict=True)]
    before = max(falls[: places[3] + 1])
    return found if falls[-1] <= 1.25 * before + _FALL_FRACTION * found.rise else None
