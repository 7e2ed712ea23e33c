"""Stops a cell that is about to fill the memory. The states are watching, tripped, delivered, released.

The sampler detects that too little memory is available, and sends a signal to the main thread repeatedly until its
handler has raised the exception. Meanwhile a helper thread does what the main thread cannot: it cancels TensorFlow's
running functions, raises in the threads that the cell started, and makes child processes the OOM killer's first choice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

from ..collectors.cgroup import Placement
from ..collectors.memory_group import MemoryGroup, groups_at, machine_bytes
from ..errors import SourceUnavailable
from ..levels import Levels
from ..shield import shielded
from ..threads import background_thread
from ..units import MIB
from .cancel import Cancellation, cancel, is_cancelled_error
from .error import (
    RENDER,
    CodeName,
    HostMemoryLimitInterrupt,
    HostMemoryLimitReached,
    is_bare,
    is_refusal,
    plain_traceback,
)
from .native import NativeGuard
from .release import give_back, release
from .safe_place import in_cell, is_safe
from .snapshot import MemorySampler, Snapshot
from .stops import Cell, Stop, Stops
from .words import CellFacts
from .workers import CellWorkers, end_children, offer_children_first, raise_in

_CANCEL_AFTER_SECONDS = 0.25
# Python code between two native calls raises by itself within milliseconds; it is not cancelled then. Not while the rest of
# the memory would be full before.
_GRACE_SECONDS, _GRACE_FRACTION = 0.05, 0.25
# How long to wait for an import: a partly imported TensorFlow cannot be imported again, but a killed kernel is worse.
_IMPORT_SECONDS = 0.3
_POLL_SECONDS = 0.01
# After a stop, for threads of the cell to reach a place where they can be stopped.
_THREADS_SECONDS = 5.0
_PRIORITY = -10  # of the helper thread, so that it gets a CPU at once on a busy machine
_SHORT_TIMES = 8  # of the level: if a cell starts with less available, free memory of allocators is released first
# IPython's traceback reads and parses each file on the stack: with TensorFlow's files, tens of MiB.
_RICH_BYTES = 256 * MIB
_CALLS = ("call", "c_call")  # profile events
# After user code has caught the exception this often, it gets one that `except Exception` does not catch.
_CAUGHT_COUNT = 2


class MemoryGuard:
    """The guard of one kernel.

    Args:
        namespace: The globals of the user's cells.
        facts: As for :class:`~.stops.Stops`.
        gate: Parts of the gate, whose allocations are refused if they cannot fit.
        in_fit: Returns whether ``fit``, ``evaluate`` or ``predict`` is running.
        code_name: Names code in tracebacks.

    Attributes:
        paused: True while the user has switched the stop off.
        stops: The stops and refusals so far.
        parts: State of the gate by library: None if it works, a sentence if not, "" while the library is not imported.
        unavailable: Why the native library is missing; None if it is loaded.
    """

    def __init__(
        self,
        namespace: Mapping[str, Any],
        facts: Callable[[int | None], CellFacts],
        *,
        gate: tuple[str, ...] = (),
        in_fit: Callable[[], bool] = lambda: False,
        code_name: CodeName = lambda file: None,
    ) -> None:
        self._in_fit = in_fit
        self._code_name = code_name
        self._namespace = namespace
        self.paused = False
        self.stops = Stops(facts)
        self._gate = gate
        self.parts: dict[str, str | None] = {}
        self.unavailable: str | None = None
        self._native: NativeGuard | None = None
        self._sampler: MemorySampler  # from start() on
        self._started = False
        self._placement = Placement(os.getpid())
        self._cell: Cell | None = None  # None while no cell is watched
        self._cancellation = Cancellation(self.instead_of)
        self._workers = CellWorkers()
        self._signal = 0
        self._in_handler = False
        self._earlier_handler: Any = None
        self._pipe: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self._modules = 0  # number of imported modules when the gate was last armed

    def start(self, signal_number: int | None) -> None:
        """Start the guard. Call from the main thread.

        Args:
            signal_number: An unused real-time signal.

        Raises:
            SourceUnavailable: This system does not support it; the text says why.
        """
        if signal_number is None or not hasattr(signal, "pthread_kill"):
            raise SourceUnavailable("The memory guard needs a free real-time signal.")
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._signal = signal_number
        self._earlier_handler = signal.signal(signal_number, self._on_signal)
        self._thread = background_thread(self._help, "tfguard-stop")
        self._thread.start()
        try:
            self._sampler = self._native = NativeGuard.load()
        except SourceUnavailable as absent:
            from .sampler import PythonSampler  # only here: it makes the start of a kernel longer

            self.unavailable, self._sampler = str(absent), PythonSampler()
        self._sampler.start(self._new_groups() or (), self._pipe[1], signal_number)
        self.imported()
        self._started = True

    @property
    def stop_bytes(self) -> int | None:
        """A cell is stopped if less is available; None while the guard is paused or not started."""
        if not self._started or self.paused:
            return None
        return Levels.of(self._sampler.total_bytes()).stop_bytes

    @property
    def is_group_limit(self) -> bool:
        """True if the binding limit is that of a memory group, not the machine's memory."""
        return self._started and self._sampler.total_bytes() < machine_bytes()

    def cell_begins(self) -> None:
        """Start watching a cell."""
        if not self._started or self.paused:
            return
        if (groups := self._new_groups()) is not None:
            self._sampler.use_groups(groups)
        self.stops.cell_begins()
        self.imported()
        self._workers.begin()
        self._cancellation.begin()
        available, total = self._sampler.available_bytes(), self._sampler.total_bytes()
        levels = Levels.of(total)
        if available < _SHORT_TIMES * levels.stop_cap_bytes:
            # malloc and TensorFlow's pool may still hold memory that an earlier cell freed.
            give_back(self._release_pool)
            available = self._sampler.available_bytes()
        self._cell = Cell(total, available)
        self._sampler.arm(levels.for_cell(available))

    def imported(self) -> None:
        """After an import: arm the gate for new libraries, and make TensorFlow's functions cancellable."""
        if self._cell is not None and self._cancellation.calls is None:
            self._cancellation.begin()
        if self._native is not None and self._gate and len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self.parts = self._native.gate(self._gate)

    def cell_ends(self, error: BaseException | None) -> Stop | None:
        """Stop watching, and free the cell's memory if it was stopped.

        Args:
            error: The exception that ended the cell, if any.

        Returns:
            The stop, if there was one.
        """
        cell, self._cell = self._cell, None
        if cell is None:
            return None
        self._end_profile()
        seen = self._sampler.snapshot()
        self._sampler.disarm()
        self._cancellation.end()
        if self.stops.of_cell is None and error is not None:
            if seen.trip_count:  # the user sees another error, of a cancelled function
                self.stops.reached(seen, cell, error)
            elif seen.last_refused_bytes and is_refusal(error):
                self.stops.refused(seen, cell, error)
        if self.stops.of_cell is not None or seen.trip_count:
            with shielded("freeing memory after a stop"):
                release(error)
                give_back(self._release_pool)
        return self.stops.of_cell

    def instead_of(self, error: BaseException) -> BaseException:
        """The exception to raise for one that left a ``fit`` or an operation: the guard's if the guard caused the error."""
        cell = self._cell
        if cell is None or self.stops.of_cell is not None:
            return error
        if is_cancelled_error(error) or is_bare(error):
            seen = self._sampler.snapshot()
            if seen.trip_count:
                self.stops.look(error)
                return self._deliver(seen, cell)
        return error

    @property
    def is_started(self) -> bool:
        """True from :meth:`start` to :meth:`stop`."""
        return self._started

    @property
    def is_watching(self) -> bool:
        """True while a cell is being watched."""
        return self._cell is not None

    def available_bytes(self) -> int:
        """Read the available memory now, in bytes."""
        return self._sampler.available_bytes()

    def total_bytes(self) -> int:
        """The binding limit."""
        return self._sampler.total_bytes()

    def refuse(self, text: str) -> BaseException:
        """The exception for a run that cannot fit. `text` says why."""
        stop = self.stops.hopeless(text, self.available_bytes(), self.total_bytes())
        refused: BaseException = HostMemoryLimitReached(stop.text)
        return refused

    def shows(self, error: BaseException) -> None:
        """Prepare to print the error that ended the cell: refuse nothing; use a plain traceback if memory is short."""
        cell = self._cell
        if cell is None:
            return
        is_plain = isinstance(error, (HostMemoryLimitReached, HostMemoryLimitInterrupt))
        seen = self._sampler.snapshot()
        if seen.trip_count or seen.last_refused_bytes:
            self._sampler.disarm()
            self.stops.will_show(error)
            is_plain |= self._sampler.available_bytes() < _RICH_BYTES and not hasattr(error, RENDER)
        if is_plain:
            setattr(error, RENDER, partial(plain_traceback, error, self._code_name))

    def pause(self) -> None:
        """Stop no cell until :meth:`resume`, including the running one."""
        self.paused = True
        self._sampler.disarm()
        self._cancellation.end()
        self._cell = None

    def resume(self) -> None:
        """Resume watching with the next cell."""
        self.paused = False

    def stop(self) -> None:
        """Stop the guard, and restore the signal handler."""
        if not self._started:
            return
        self._started, self._cell = False, None
        self._cancellation.end()
        self._sampler.stop()
        if signal.getsignal(self._signal) == self._on_signal:
            signal.signal(self._signal, self._earlier_handler or signal.SIG_DFL)
        if self._pipe is not None:
            os.write(self._pipe[1], b"q")
            if self._thread is not None:
                self._thread.join(1.0)
            for descriptor in self._pipe:
                os.close(descriptor)
            self._pipe = None

    def leave_child(self) -> None:
        """In a forked child, which has no sampler: watch nothing."""
        self._started, self._cell = False, None

    def _new_groups(self) -> tuple[MemoryGroup, ...] | None:
        """The memory groups of this process if they have changed; otherwise None."""
        try:
            place = self._placement.look()
            return None if place is None else groups_at(*place)
        except SourceUnavailable:
            return None  # no memory groups: the machine's memory is the limit

    def _release_pool(self) -> None:
        if self._native is not None:
            self._native.release_pool()

    # --- the stop

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._in_handler:
            return  # signals come until the stop is delivered, on a busy machine faster than this handler runs
        self._in_handler = True
        try:
            with self._sampler.exempt():
                stopped = self._stop_at(frame, may_wait_for_imports=False)
        finally:
            self._in_handler = False
        if stopped is not None:
            raise stopped

    def _on_call(self, frame: FrameType, event: str, argument: object) -> None:
        """Profile hook, set until a safe place is reached: the next signal might come only after the cell has ended."""
        if event not in _CALLS:
            return  # a call that has ended may have taken a lock that its caller does not know of yet
        with self._sampler.exempt():
            stopped = self._stop_at(frame, may_wait_for_imports=True)
        if stopped is not None:
            raise stopped

    def _stop_at(
        self, frame: FrameType | None, *, may_wait_for_imports: bool
    ) -> BaseException | None:
        """The exception to raise in this frame, if a stop is due and the place is safe.

        Args:
            frame: The innermost frame of the main thread.
            may_wait_for_imports: False to interrupt an import that takes long.
        """
        cell = self._cell
        # First: the native library detects by this call that the main thread is responsive and needs no interruption.
        seen = self._sampler.snapshot()
        if cell is None or not seen.tripped or seen.delivered or self.stops.is_composing:
            self._end_profile()
            return None
        if _is_handled():
            return None
        in_imports = not may_wait_for_imports and seen.trip_seconds_ago > _IMPORT_SECONDS
        if in_cell(frame, self._namespace) and is_safe(frame, in_imports=in_imports):
            self._end_profile()
            return self._deliver(seen, cell)
        # In an unsafe place, or the cell is awaiting something.
        if sys.getprofile() is None:
            sys.setprofile(self._on_call)
        return None

    def _end_profile(self) -> None:
        if sys.getprofile() == self._on_call:
            sys.setprofile(None)

    def _deliver(self, seen: Snapshot, cell: Cell) -> BaseException:
        """Create the exception, and mark the stop as delivered."""
        with self.stops.composing():
            self.stops.look()
            # The exit of an enclosing `with Pool()` would wait for a worker that was killed.
            end_children()
            stop = self.stops.reached(seen, cell)
        self._sampler.delivered()
        self._cancellation.renew()  # for functions that run after the cell has caught the exception
        kind = (
            HostMemoryLimitReached if seen.trip_count <= _CAUGHT_COUNT else HostMemoryLimitInterrupt
        )
        return kind(stop.text)

    # --- the helper thread

    def _help(self) -> None:
        assert self._pipe is not None
        with contextlib.suppress(OSError):  # only for this thread; fails without permission
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PRIORITY)
        while os.read(self._pipe[0], 1) == b"s":
            with shielded("stopping a cell"):
                self._help_once()

    def _help_once(self) -> None:
        cell, calls = self._cell, self._cancellation.calls
        most = _GRACE_SECONDS if self._in_fit() else _CANCEL_AFTER_SECONDS
        due = _grace_seconds(self._sampler.snapshot(), most)
        threads = raise_in(self._workers.threads(), HostMemoryLimitReached)
        offer_children_first()
        ends = time.monotonic() + _THREADS_SECONDS
        while cell is not None:
            seen = self._sampler.snapshot()
            if self._cell is cell and seen.tripped and not seen.delivered:
                if seen.trip_seconds_ago >= due:
                    due = seen.trip_seconds_ago + _CANCEL_AFTER_SECONDS
                    cancel(calls)
            elif not threads or time.monotonic() > ends:
                return
            elif self._cell not in (None, cell) and seen.tripped:
                return  # the next cell needs this thread
            time.sleep(_POLL_SECONDS)
            threads = raise_in(threads, HostMemoryLimitReached)


def _grace_seconds(seen: Snapshot, most: float) -> float:
    """How long a stopped function may go on until it is cancelled: less than `most` if the memory fills fast."""
    rate = seen.fill_bytes_per_second
    if rate <= 0:
        return most
    return min(most, _GRACE_FRACTION * max(0, seen.trip_available_bytes) / rate)


def _is_handled() -> bool:
    """True while user code handles the exception of an earlier stop: a second one would interrupt its cleanup."""
    return isinstance(sys.exc_info()[1], (HostMemoryLimitReached, HostMemoryLimitInterrupt))
