"""The helper thread of the guard: it does at a trip what the main thread cannot.

It cancels TensorFlow's running functions, raises in the threads that the cell started, takes back work that waits in
pools, and makes child processes the OOM killer's first choice.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType

from ..shield import shielded
from ..threads import background_thread
from .cancel import CancellableCalls, Cancellation, cancel
from .cell_work import CellWork
from .error import ThreadStopped
from .snapshot import Snapshot
from .stops import WatchedCell
from .worker_processes import offer_children_first
from .workers import ThreadStop, is_of_pool

_CANCEL_AFTER_SECONDS = 0.25
# Python code between two native calls raises by itself within milliseconds; it is not cancelled then. Not while the rest of
# the memory would be full before.
_GRACE_SECONDS, _GRACE_FRACTION = 0.05, 0.25
_JUDGE_SECONDS = 0.1  # at most, to see which thread fills
_POLL_SECONDS = 0.01
_FIRST_SECONDS, _FIRST_POLLS = 0.002, 10
_SWITCH_SECONDS = 0.0005
# After a trip, until it is known which thread fills; less if half of the rest of the memory would be full before.
_JUDGED_SECONDS, _JUDGED_FRACTION = 0.4, 0.5
# If stopping other threads has not helped so often, the running cell is stopped.
_SPARED_COUNT = 2
# After a stop, for threads of the cell to reach a place where they can be stopped.
_THREADS_SECONDS = 5.0
_PRIORITY = -10  # of the thread, so that it gets a CPU at once on a busy machine


class StopHelper:
    """The thread that waits for trips.

    Args:
        work: What the running cell has started.
        cancellation: TensorFlow's functions in the running cell.
        in_fit: Returns whether ``fit``, ``evaluate`` or ``predict`` is running.
        state: Returns the watched cell, None if there is none, and the state of the sampler.
        on_beside: Called before threads of earlier cells are stopped, with their names.
        on_delivery: Called when they have been stopped.
    """

    def __init__(
        self,
        work: CellWork,
        cancellation: Cancellation,
        in_fit: Callable[[], bool],
        state: Callable[[], tuple[WatchedCell | None, Snapshot]],
        on_beside: Callable[[WatchedCell, Snapshot, list[str]], object],
        on_delivery: Callable[[], None],
    ) -> None:
        self._on_beside = on_beside
        self._on_delivery = on_delivery
        self._judged: tuple[WatchedCell | None, int, bool] = None, 0, False
        self._work = work
        self._cancellation = cancellation
        self._in_fit = in_fit
        self._state = state
        self._thread: threading.Thread | None = None

    def start(self, wait_for_trip: Callable[[], bool]) -> None:
        """Start the thread; it ends when `wait_for_trip` returns False."""
        self._thread = background_thread(partial(self._run, wait_for_trip), "tfguard-stop")
        self._thread.start()

    def stop(self) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(1.0)

    def _run(self, wait_for_trip: Callable[[], bool]) -> None:
        with contextlib.suppress(OSError):  # only for this thread; fails without permission
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PRIORITY)
        while wait_for_trip():
            with shielded("stopping a cell"):
                self._help()

    def _help(self) -> None:
        (cell, seen), calls = self._state(), self._cancellation.calls
        if cell is None:
            return
        due = _grace_seconds(seen, _GRACE_SECONDS if self._in_fit() else _CANCEL_AFTER_SECONDS)
        with contextlib.ExitStack() as until_delivered:
            until_delivered.enter_context(_short_turns())
            offer_children_first()  # a child may fill the rest while the threads are measured
            blame = self._work.who_fills(_grace_seconds(seen, _JUDGE_SECONDS))
            is_spared = not blame.is_cell and seen.trip_count <= _SPARED_COUNT
            self._judged = cell, seen.trip_count, is_spared
            if is_spared:
                self._stop_earlier(cell, seen, blame.earlier)
                return
            self._work.queued.take_back()
            self._work.threads.cancel_timers()
            working = [*blame.of_cell, *blame.earlier]
            threads = ThreadStop(working, self._work.namespace, ThreadStopped)
            time.sleep(_FIRST_SECONDS)
            threads.poll()
            self._wait(
                cell, partial(self._cancel_but, calls, working), threads, due, until_delivered.close
            )

    def spares(self, cell: WatchedCell, seen: Snapshot, frame: FrameType) -> bool:
        """True if the cell must not be stopped, at least not yet: a thread of an earlier cell may be to blame.

        Args:
            cell: The cell.
            seen: The state of the sampler.
            frame: The innermost frame of the main thread.
        """
        if seen.trip_count > _SPARED_COUNT:
            return False
        if self._judged[:2] == (cell, seen.trip_count):
            return self._judged[2]  # also when the thread has ended meanwhile
        return bool(self._work.threads.earlier()) and seen.trip_seconds_ago < _grace_seconds(
            seen, _JUDGED_SECONDS, _JUDGED_FRACTION
        )

    def _stop_earlier(
        self, cell: WatchedCell, seen: Snapshot, earlier: list[threading.Thread]
    ) -> None:
        """Stop threads of earlier cells instead of the running one."""
        calls, idents = self._cancellation.calls, {one.ident or 0 for one in earlier}
        self._on_beside(cell, seen, [one.name for one in earlier])
        if any(map(is_of_pool, earlier)):
            self._work.queued.take_back(earlier=True)
        has_timers = any(isinstance(one, threading.Timer) for one in earlier)
        threads = ThreadStop(earlier, self._work.namespace, ThreadStopped)
        time.sleep(_FIRST_SECONDS)
        began = time.monotonic()
        due = _grace_seconds(seen, _GRACE_SECONDS)
        is_cancelled = is_delivered = False
        while time.monotonic() - began < _THREADS_SECONDS:
            threads.poll()
            if has_timers:
                self._work.threads.cancel_timers(earlier=True)
            waited = time.monotonic() - began
            if not is_cancelled and waited > due:
                is_cancelled = True
                cancel(calls, idents)
            if not is_delivered and (threads.is_over or waited > _CANCEL_AFTER_SECONDS):
                is_delivered = True
                self._on_delivery()
            if threads.is_over and not any(one.is_alive() for one in earlier):
                break
            now, newest = self._state()
            if now is not cell or newest.trip_count != seen.trip_count:
                break
            time.sleep(_POLL_SECONDS)

    def _cancel_but(self, calls: CancellableCalls | None, working: list[threading.Thread]) -> None:
        """Cancel the functions of all threads but those of earlier cells that do not work for this one."""
        others = (one for one in self._work.threads.earlier() if not is_of_pool(one))
        spared = {one.ident for one in others if one not in working}
        cancel(calls, sys._current_frames().keys() - spared)

    def _wait(
        self,
        cell: WatchedCell,
        cancel_calls: Callable[[], object],
        threads: ThreadStop,
        due: float,
        on_delivery: Callable[[], None],
    ) -> None:
        """Stop what can be stopped later only, until nothing is left of the cell.

        Args:
            cell: The cell.
            cancel_calls: Cancels its functions of TensorFlow.
            threads: Its threads.
            due: Seconds after the trip when the functions are cancelled.
            on_delivery: Called when the main thread has raised its exception.
        """
        ends, was_delivered = time.monotonic() + _THREADS_SECONDS, False
        count, polls = self._judged[1], 0
        while True:
            now, seen = self._state()
            if now is cell and seen.trip_count > count:
                return  # its byte is in the pipe
            if now is cell:
                self._work.threads.cancel_timers()
                if not was_delivered:
                    self._work.queued.take_back()
            if seen.delivered and not was_delivered:
                on_delivery()
            was_delivered = seen.delivered
            if now is cell and seen.tripped and not seen.delivered:
                if seen.trip_seconds_ago >= due:
                    due = seen.trip_seconds_ago + _CANCEL_AFTER_SECONDS
                    cancel_calls()
                elif cell.is_over and seen.trip_seconds_ago > _THREADS_SECONDS:
                    self._on_delivery()  # no code of the notebook is on the stack of the main thread
            elif threads.is_over or time.monotonic() > ends:
                return
            elif now not in (None, cell):
                threads.only_due()
                if seen.tripped:
                    return  # the next cell needs this thread
            # Threads that fill at once leave little time.
            time.sleep(_POLL_SECONDS if polls > _FIRST_POLLS else _FIRST_SECONDS)
            threads.poll()
            polls += 1


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads hand over the interpreter lock sooner, so that threads that fill leave the main thread a turn."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, _SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def _grace_seconds(seen: Snapshot, most: float, fraction: float = _GRACE_FRACTION) -> float:
    """How long to wait after a trip: less than `most` if that `fraction` of the rest of the memory would be full before."""
    rate = seen.fill_bytes_per_second
    if rate <= 0:
        return most
    return min(most, fraction * max(0, seen.trip_available_bytes) / rate)
