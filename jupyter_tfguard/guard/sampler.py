"""The sampler in Python, for kernels without the native library.

It needs the GIL, so it takes no samples while a long C call holds the GIL.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Sequence

import psutil

from ..levels import Levels
from ..memory.available import AvailableMemory
from ..memory.groups import MemoryGroup
from ..shield import note_problem
from ..threads import background_thread
from .snapshot import Snapshot

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.004, 0.05
# Number of samples until the threshold is reached at the current fill rate.
_SAMPLES_AHEAD = 6
_OTHERS_AGAIN_SECONDS = 0.05
_AGAIN_SECONDS = 0.01  # between two signals to the main thread
# If user code caught the exception and continues, stop it again once available memory has fallen to this fraction.
_FALLEN_FRACTION = 0.9
_FALLEN_AFTER_SECONDS = 0.01
_RECOVERED_TIMES = 4
# Memory that can be given back makes a stop needless. At most a tenth of the time; not if the rest is full before.
_GIVE_BACK_AGAIN_SECONDS, _TIMES_ITS_COST, _GIVE_BACK_SECONDS = 0.5, 10, 0.2


class PythonSampler:
    """A thread that samples the available memory while a cell runs. See :class:`~.snapshot.MemorySampler`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._available: AvailableMemory | None = None
        self._levels: Levels | None = None  # None: disarmed
        self._ended = False
        self._signal = -1
        self._wake = threading.Semaphore(0)
        self._main = 0
        self._next_giving_back = 0.0
        self._reset()

    def _reset(self) -> None:
        self._tripped = self._was_delivered = False
        self._trips = 0
        self._trip_bytes = 0
        self._trip_time = self._signal_time = self._delivered_time = 0.0
        self._added_bytes = 0
        self._others_time = 0.0
        self._start: tuple[int, int] | None = None  # available memory and own, at the first sample
        self._lowest: int | None = None
        self._last: tuple[float, int] | None = None
        self._rate = 0.0

    def start(self, groups: Sequence[MemoryGroup], signal_number: int) -> None:
        """Start the thread, disarmed.

        Raises:
            SourceUnavailable: This system has no memory figures.
        """
        self.use_groups(groups)
        self._signal = signal_number
        self._main = threading.main_thread().ident or 0
        self._thread = background_thread(self._run, "tfguard-memory")
        self._thread.start()

    def wait_for_trip(self) -> bool:
        """Wait for the next trip. False after :meth:`stop`."""
        self._wake.acquire()
        return not self._ended

    def use_groups(self, groups: Sequence[MemoryGroup]) -> None:
        """Read these memory groups from now on. Call while disarmed."""
        available = AvailableMemory(groups)
        with self._changed:
            old, self._available = self._available, available
        if old is not None:
            old.close()

    def total_bytes(self) -> int:
        """The smallest limit: the levels of a stop are parts of it."""
        assert self._available is not None
        return self._available.total_bytes()

    def arm(self, levels: Levels) -> None:
        """Arm for a new cell; resets an earlier trip."""
        with self._changed:
            self._reset()
            self._levels = levels
            self._changed.notify()

    def disarm(self) -> None:
        """Disarm: no trips until the next :meth:`arm`; the thread sleeps."""
        with self._changed:
            self._levels = None

    def delivered(self) -> None:
        """Note that the exception was raised. Trips again if available memory continues to fall."""
        # Takes no lock: a signal handler calls this, and it may have interrupted this thread while it holds the lock.
        self._delivered_time = time.monotonic()
        self._was_delivered = True

    def exempt(self) -> contextlib.AbstractContextManager[None]:
        """Nothing is refused here."""
        return contextlib.nullcontext()

    def available_bytes(self) -> int:
        """Read the available memory now, in bytes; 0 if unknown."""
        return (self._available.read() if self._available is not None else None) or 0

    def snapshot(self) -> Snapshot:
        """The current state."""
        return Snapshot(
            tripped=self._tripped,
            delivered=self._was_delivered,
            trip_count=self._trips,
            trip_available_bytes=self._trip_bytes,
            trip_seconds_ago=time.monotonic() - self._trip_time if self._tripped else 0.0,
            trip_added_bytes=max(0, self._added_bytes),
            lowest_available_bytes=self._lowest or 0,
            fill_bytes_per_second=self._rate,
        )

    def give_back(self, *, if_due: bool = False) -> int:
        """Return free memory of malloc to the system; 0, because TensorFlow's pool is not known here."""
        began = time.monotonic()
        if not if_due or began >= self._next_giving_back:
            with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc
                ctypes.CDLL(None).malloc_trim(0)
            now = time.monotonic()
            self._next_giving_back = now + max(
                _GIVE_BACK_AGAIN_SECONDS, _TIMES_ITS_COST * (now - began)
            )
        return 0

    def stop(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._wake.release()
        if self._thread is not None:
            self._thread.join(1.0)
        if self._available is not None:
            self._available.close()

    # --- the thread

    def _run(self) -> None:
        pause = _LONGEST_SECONDS
        while True:
            with self._changed:
                while self._levels is None and not self._ended:
                    self._changed.wait()
                if self._ended:
                    return
                levels = self._levels
            assert levels is not None
            try:
                pause = self._sample(levels)
            except Exception as error:
                note_problem("reading the available memory", error)
                self.disarm()
            time.sleep(pause)

    def _sample(self, levels: Levels) -> float:
        """Take one sample; returns the seconds until the next."""
        assert self._available is not None
        available, now = self._available.read(), time.monotonic()
        if available is None:
            return _LONGEST_SECONDS
        if self._start is None:
            self._start = available, _used_bytes(with_children=False)
        self._lowest = available if self._lowest is None else min(self._lowest, available)
        if self._last is not None:
            before, had = self._last
            rate = (had - available) / max(1e-6, now - before)
            # Two samples far apart already form a mean.
            weight = 1.0 if now - before > 0.02 else 0.5
            self._rate = self._rate * (1 - weight) + rate * weight
        self._last = now, available
        threshold = levels.threshold_bytes(self._rate)
        if self._was_delivered and available > _RECOVERED_TIMES * threshold:
            self._tripped = self._was_delivered = (
                False  # user code caught the exception and now uses less memory
            )
            self._trips = 0
        with self._changed:
            if self._levels is levels:
                self._judge(available, threshold, now)
        if self._tripped and not self._was_delivered:
            return _SHORTEST_SECONDS
        ahead = available - threshold
        if self._rate <= 0:
            return _LONGEST_SECONDS
        return min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, ahead / self._rate / _SAMPLES_AHEAD))

    def _judge(self, available: int, threshold: float, now: float) -> None:
        if not self._tripped:
            if available < threshold and self._is_own_fill(available, now):
                if available > threshold / 2 + max(0.0, self._rate) * _GIVE_BACK_SECONDS:
                    self.give_back(if_due=True)
                    assert self._available is not None
                    available = self._available.read() or 0
                if available < threshold:
                    self._trip(available, now)
        elif not self._was_delivered:
            if now - self._signal_time >= _AGAIN_SECONDS:
                self._send_signal(now)
        elif (
            now - self._delivered_time > _FALLEN_AFTER_SECONDS
            and available < self._trip_bytes * _FALLEN_FRACTION
        ):
            self._trip(available, now)

    def _is_own_fill(self, available: int, now: float) -> bool:
        """False if other processes fill the memory."""
        if self._start is None or self._levels is None:
            return False
        if now - self._others_time < _OTHERS_AGAIN_SECONDS:
            return False
        before, own = self._start
        self._added_bytes = _used_bytes() - own
        if self._added_bytes >= self._levels.own_fraction * (before - available):
            return True
        self._others_time = now
        return False

    def _trip(self, available: int, now: float) -> None:
        self._tripped, self._was_delivered = True, False
        self._trips += 1
        self._trip_bytes, self._trip_time = available, now
        self._wake.release()
        self._send_signal(now)

    def _send_signal(self, now: float) -> None:
        self._signal_time = now
        signal.pthread_kill(self._main, self._signal)


def _used_bytes(*, with_children: bool = True) -> int:
    """Memory of this process, and of its children, that is no file."""
    found = 0
    process = psutil.Process()
    for one in [process, *(process.children(recursive=True) if with_children else ())]:
        with contextlib.suppress(psutil.Error):
            memory = one.memory_info()
            found += memory.rss - getattr(memory, "shared", 0)
    return found
