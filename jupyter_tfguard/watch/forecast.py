"""When a kernel's memory will reach the limit that binds it, from what was seen of its rise; silent where that is not sure.

What counts is new ground: how far the highest floor so far rises. Batches that come and go, a step that loads an array, and
an epoch that gives back what it took rise to no new ground, or to it once. The future is foreseen ten times as far as the
rise was seen, and not while most of the limit is free, so that an import or a load says nothing about the next minutes.

Not foreseen: GPU memory, which TensorFlow's allocator takes in pieces that double; a rise that others in the container cause.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..limits import Limit, used_of
from ..trend import Trend, trend

HORIZON_SECONDS = 3600.0
FORESEEN_TIMES = 10.0  # as long as the rise was seen
KEPT_SECONDS = 360.0  # enough to see the whole horizon
WINDOWS_SECONDS = (20.0, 40.0, 80.0, 160.0, KEPT_SECONDS)
FIRST_SECONDS = 10.0  # of a process: imports
_BIN_SECONDS = 1.0
_GAP_SECONDS = 8.0
_PARTS = 15
_FAR_FRACTION = 0.4  # less than this of the limit in use
# "Surely": the interval of the slope may reach down to this part of it.
_SURE_FRACTION = 0.5
_QUARTER_FRACTION = (
    0.4  # of the whole slope, in each quarter of a window: nothing that begins or levels off
)
_OWN_FRACTION = 0.5  # of the rise, by the kernel itself
_FALL_FRACTION = 0.25


@dataclass(frozen=True, slots=True)
class Forecast:
    """The limit ahead.

    Attributes:
        seconds_left: Until it is reached.
        bytes_per_second: How fast what it counts rises. low, high: 95 % confidence interval.
    """

    seconds_left: float
    bytes_per_second: float
    low: float
    high: float


@dataclass(slots=True)
class _Second:
    """One second of samples: the least that the kernel itself held, the least and the most in use."""

    time: float
    own: float
    floor: float
    top: float


class Forecaster:
    """The rise of one kernel; to be given each sample while the kernel is busy.

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
        """Take a sample as the collectors gave it; one that does not tell what is in use is passed over.

        Args:
            moment: Monotonic seconds.
            values: Metrics of the process, the group and the machine; NaN or left out where unknown.
            limit: The one that binds.
        """
        used = None if limit is None else used_of(*limit, values)
        if limit is None or used is None:
            return
        own = used  # all that a limit of the process counts is the kernel's own
        if not limit.counts_address_space:
            children = values.get("process.children_rss_bytes", math.nan)
            own = values["process.rss_bytes"] + (0.0 if math.isnan(children) else children)
        self.add(moment, own, used, limit.size_bytes)

    def add(self, moment: float, own: float, used: float, limit: float) -> None:
        """Take a sample; cheap, most change one number.

        Args:
            moment: Monotonic seconds.
            own: Bytes that the kernel and its children hold.
            used: Bytes in use of what the limit counts, without what can be given back. limit: bytes.
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
        """The forecast, made once a second at most; None where the limit is not surely ahead within an hour."""
        with self._lock:
            newest = self._seconds[-1] if self._seconds else None
            time = None if newest is None else newest.time
            if time != self._found_at:
                self._found_at = time
                is_far = newest is None or newest.top < _FAR_FRACTION * self._limit
                # The newest second is not over: its floor may still fall.
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
            return None  # it was not seen for so long
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
    """The trend of a window where it surely and steadily rises, until now, and by the kernel itself."""
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
    # Below its own ground by more than it was before: it gives back what it took.
    falls = [high - second.floor for high, second in zip(ground, seconds, strict=True)]
    before = max(falls[: places[3] + 1])
    return found if falls[-1] <= 1.25 * before + _FALL_FRACTION * found.rise else None
