"""Stops a cell that is about to fill the memory. The states are watching, tripped, delivered, released.

The native library decides that too little memory is available, and sends a signal to the main thread repeatedly until its
handler has raised the exception. Meanwhile the helper thread, helper.py, stops what runs beside the main thread.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

from ..collectors.cgroup import Placement
from ..errors import SourceUnavailable
from ..levels import Levels
from ..memory.available import binding_now
from ..memory.groups import MemoryGroup
from ..memory.limits import Limit, LimitKind
from ..shield import shielded
from ..units import MIB
from .activity import notebook_function
from .beside_texts import POOL_HAS_ENDED
from .cancel import Cancellation, is_cancelled_error
from .cell_work import CellWork
from .error import (
    RENDER,
    CodeName,
    HostMemoryLimitInterrupt,
    HostMemoryLimitReached,
    ThreadStopped,
    holds_group,
    is_bare,
    is_handled,
    plain_traceback,
    renew_copies,
)
from .helper import StopHelper
from .main_thread import MainThread
from .native import NativeGuard
from .release import release
from .safe_place import reaches_ipython
from .snapshot import Snapshot
from .stop_texts import CellFacts
from .stops import CALLBACK, CELL, Stop, Stops, WatchedCell

_SHORT_TIMES = 8  # of the level: with less available, free memory of allocators is released before a cell or a fork
# IPython's traceback reads and parses each file on the stack: with TensorFlow's files, tens of MiB.
_RICH_BYTES = 256 * MIB
# After user code has caught the exception this often, it gets one that `except Exception` does not catch.
_CAUGHT_COUNT = 2
_RECOVERED_TIMES = 4  # of the level
_LARGE_CHILD = 0.05  # of the limit: a process of an earlier cell that holds as much is ended, too
_AWAIT_SECONDS = 0.25  # after a stop in a task, for the cell to end by itself


class MemoryGuard:
    """The guard of one kernel.

    Args:
        namespace: The globals of the user's cells.
        facts: As for :class:`~.stops.Stops`.
        gate: Parts of the gate, whose allocations are refused if they cannot fit.
        in_fit: Returns whether ``fit``, ``evaluate`` or ``predict`` is running.
        code_name: Names code in tracebacks.

    Attributes:
        is_started: True from :meth:`start` to :meth:`stop`.
        paused: True while the user has switched the stop off.
        stops: The stops and refusals so far.
        parts: State of the gate by library: None if it works, a sentence if not, "" while the library is not imported.
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
        self._code_name = code_name
        self.paused = False
        self.stops = Stops(facts, self.limit)
        self._gate = gate
        self.parts: dict[str, str | None] = {}
        self._native: NativeGuard  # from start() on
        self.is_started = False
        self._placement = Placement(os.getpid())
        self._cell: WatchedCell | None = None  # None while no cell is watched
        self._raised = 0  # how often in this cell
        self._between = contextlib.ExitStack()  # cells
        self._cancellation = Cancellation(self.instead_of)
        self._work = CellWork(namespace)
        self._helper = StopHelper(
            self._work,
            self._cancellation,
            in_fit,
            self._state,
            self.stops.beside,
            lambda: self._native.delivered(),
        )
        self._main = MainThread(
            namespace, self._state, lambda: self._native.exempt(), self._exception
        )
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
        self._native = NativeGuard.load(self._new_groups() or ())
        self._main.start(signal_number)
        self._native.start(signal_number)
        self._helper.start(self._native.wait_for_trip)
        self.is_started = True
        self.imported()

    @property
    def stop_bytes(self) -> int | None:
        """A cell is stopped if less is available; None while the guard is paused or not started."""
        if not self.is_started or self.paused:
            return None
        return Levels.of(self._native.total_bytes()).stop_bytes

    def callback_begins(self) -> bool:
        """Start watching a callback of a widget, unless a cell is running; end it with :meth:`cell_ends`."""
        if threading.current_thread() is not threading.main_thread() or self.is_watching:
            return False
        self.cell_begins(CALLBACK)
        return self.is_watching

    def cell_begins(self, what: str = CELL) -> Stop | None:
        """Start watching a cell.

        Args:
            what: What it is.

        Returns:
            The newest stop since the last cell, of something that earlier cells had left running.
        """
        if not self.is_started or self.paused:
            return None
        if self._cell is not None and not self._cell.may_be_replaced():
            return None
        self._end_watch_between()
        self._native.disarm()
        if (groups := self._new_groups()) is not None:
            self._native.use_groups(groups)
        self.stops.cell_begins()
        self.imported()
        self._work.begin()
        self._cancellation.renew()
        levels = Levels.of(self._native.total_bytes())
        # malloc and TensorFlow's pool may hold what an earlier cell freed.
        available = self.give_back_if_short() if what == CELL else self._native.available_bytes()
        self._cell = WatchedCell(
            levels.total_bytes, available, thread=threading.get_ident(), what=what
        )
        self._raised = 0
        self._native.arm(levels.for_cell(available))
        return self.stops.unreported() if what == CELL else None

    def imported(self) -> None:
        """After an import: arm the gate for new libraries, and make TensorFlow's functions cancellable."""
        if self._cell is not None and self._cancellation.calls is None:
            self._cancellation.begin()
        if self.is_started and self._gate and len(sys.modules) != self._modules:
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
        self._main.end_profile()
        seen = self._native.snapshot()
        self._native.disarm()
        self._cancellation.renew()
        self.stops.ended(seen, cell, error)
        if self.stops.of_cell is not None or seen.trip_count:
            with shielded("freeing memory after a stop"):
                self._work.tasks.note()
                release(error)
                self.give_back()
                self._work.tasks.release_soon(self.give_back)
        stop = self.stops.of_cell
        self._watch_what_goes_on(cell)
        return stop

    def _watch_what_goes_on(self, ended: WatchedCell) -> None:
        """Watch on after the cell if something that a cell has started can fill memory."""
        if not self._work.goes_on():
            self._cancellation.end()
            return
        self._work.threads.begin()  # from now on all are of an earlier cell
        self.stops.cell_begins()
        if threading.current_thread() is threading.main_thread():
            # The kernel's own code runs there now, which does not expect a refusal.
            self._between.enter_context(self._native.exempt())
        self._cell = WatchedCell(ended.total_bytes, is_over=True)
        self._native.arm(Levels.of(ended.total_bytes).for_cell(self._native.available_bytes()))

    def _end_watch_between(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._between.close()

    def instead_of(self, error: BaseException) -> BaseException:
        """The exception to raise for one that left a ``fit`` or an operation: the guard's if the guard caused the error."""
        cell, here = self._cell, threading.current_thread()
        if cell is None or not (is_cancelled_error(error) or is_bare(error)):
            return error
        seen, stopped = self._native.snapshot(), error
        if seen.trip_count and here is not threading.main_thread() and here.ident != cell.thread:
            stopped = ThreadStopped()
        elif seen.trip_count and self.stops.of_cell is None:
            with self._native.exempt():
                self.stops.poll(error)
                stopped = self._deliver(seen, cell, sys._getframe())
        return stopped

    @property
    def is_watching(self) -> bool:
        """True while a cell is being watched."""
        return self._cell is not None and not self._cell.is_over

    @property
    def was_stopped(self) -> bool:
        """True if the running cell was stopped."""
        return self._cell is not None and self.stops.of_cell is not None

    def available_bytes(self) -> int:
        """Read the available memory now, in bytes."""
        return self._native.available_bytes()

    def limit(self) -> Limit:
        """The binding limit: the one that :meth:`available_bytes` belongs to."""
        try:
            return binding_now().limit
        except SourceUnavailable:
            return Limit(self._native.total_bytes(), LimitKind.HOST)

    def refuse(self, text: str, what: str = "not_started") -> BaseException:
        """The exception for what cannot fit. `text` says why. `what`: as in :class:`~.stops.Stop`."""
        stop = self.stops.hopeless(text, self.available_bytes(), what)
        refused: BaseException = HostMemoryLimitReached(stop.text)
        return refused

    def has_refused(self) -> bool:
        """True if an allocation of the running cell was refused."""
        return self._cell is not None and self._native.snapshot().last_refused_bytes > 0

    def shows(self, error: BaseException) -> None:
        """Prepare to print the error that ended the cell: refuse nothing; use a plain traceback if memory is short."""
        cell = self._cell
        if cell is None:
            return
        is_plain = isinstance(error, (HostMemoryLimitReached, HostMemoryLimitInterrupt))
        seen = self._native.snapshot()
        if self.stops.of_cell is not None or seen.trip_count:
            # The loop gives them a turn before the cell has ended.
            self._work.cancel_scheduled()
            if isinstance(error, CancelledError) and self.stops.of_cell is not None:
                error.args, is_plain = (self.stops.of_cell.text,), True
            is_plain |= holds_group(error)
            if self.stops.of_cell is not None and (what := self._work.runs_on()):
                self.stops.runs_on(error, what)
        if seen.trip_count or seen.last_refused_bytes:
            self._native.disarm()
            self.stops.will_show(error)
            is_plain |= self._native.available_bytes() < _RICH_BYTES and not hasattr(error, RENDER)
        if is_plain:
            setattr(error, RENDER, partial(plain_traceback, error, self._code_name))

    def pause(self) -> None:
        """Stop no cell until :meth:`resume`, including the running one."""
        self.paused, self._cell = True, None
        self._end_watch_between()
        self._native.disarm()
        self._cancellation.end()

    def resume(self) -> None:
        """Resume watching with the next cell."""
        self.paused = False

    def stop(self) -> None:
        """Stop the guard, and restore the signal handler."""
        if not self.is_started:
            return
        self.is_started, self._cell = False, None
        self._end_watch_between()
        self._cancellation.end()
        self._native.stop()
        self._main.stop()
        self._helper.stop()

    def leave_child(self) -> None:
        """In a forked child, which has no native thread: watch nothing."""
        self.is_started, self._cell = False, None

    def _new_groups(self) -> tuple[MemoryGroup, ...] | None:
        with contextlib.suppress(SourceUnavailable):
            return self._placement.new_groups()
        return None  # no memory groups: the machine's memory is the limit

    def _state(self) -> tuple[WatchedCell | None, Snapshot]:
        return self._cell, self._native.snapshot()

    def give_back(self) -> None:
        """Collect garbage, and return free memory of allocators to the system; takes up to 0.2 s."""
        gc.collect()
        self._native.give_back()

    def give_back_if_short(self) -> int:
        """Return free memory if little is available, unless that was done a moment ago; what is available then, in bytes."""
        least = _SHORT_TIMES * Levels.of(self._native.total_bytes()).stop_cap_bytes
        if (available := self._native.available_bytes()) >= least:
            return available
        self._native.give_back(if_due=True)
        return self._native.available_bytes()

    def _exception(
        self, cell: WatchedCell, seen: Snapshot, frame: FrameType
    ) -> BaseException | None:
        """The exception to raise in this frame of the main thread; None for none, at least not yet."""
        if self.stops.is_composing or self._helper.spares(cell, seen, frame):
            return None
        levels = Levels.of(cell.total_bytes)
        if is_handled() and self._native.available_bytes() > levels.reserve_bytes:
            return None
        if seen.trip_count > 1 or self._raised > 0:
            renew_copies(frame)
            self.give_back()  # the cell may have freed memory since the last stop
            if self._native.available_bytes() > _RECOVERED_TIMES * levels.stop_bytes:
                self._native.delivered()
                return None
        return self._deliver(seen, cell, frame)

    def _deliver(self, seen: Snapshot, cell: WatchedCell, frame: FrameType | None) -> BaseException:
        """Create the exception, and mark the stop as delivered. `frame`: where it will be raised."""
        with self.stops.composing():
            self.stops.poll()
            # The exit of an enclosing `with Pool()` would wait for a worker that was killed.
            if self._work.children.end(int(_LARGE_CHILD * cell.total_bytes)):
                self.stops.later.append(POOL_HAS_ENDED)
            if cell.is_over:
                name = notebook_function(frame, self._work.namespace)
                stop = self.stops.beside(cell, seen, [name] if name else self._work.tasks.names)
            else:
                stop = self.stops.reached(seen, cell)
        self._native.delivered()
        self._cancellation.renew()  # for functions that run after the cell has caught the exception
        # After the first trips a thread may have been stopped instead; the count begins again after memory was freed.
        self._raised = 1 if seen.trip_count == 1 else self._raised + 1
        is_last = self._raised > _CAUGHT_COUNT
        if reaches_ipython(frame):
            return (HostMemoryLimitInterrupt if is_last else HostMemoryLimitReached)(stop.text)
        # In a task of the cell, or in a callback. The cell itself, which awaits, may get nothing of it.
        self._work.tasks.note()
        if self._raised > 1:
            self._work.tasks.cancel()
        self._work.tasks.later(_AWAIT_SECONDS, partial(self._end_await, cell))
        if is_last and self._work.tasks.is_in_one:
            return CancelledError(stop.text)
        stopped: BaseException = HostMemoryLimitReached(stop.text)
        return stopped

    def _end_await(self, cell: WatchedCell) -> None:
        """End the cell that still awaits although it was stopped, unless memory was freed."""
        if self._cell is cell and self._native.snapshot().tripped:
            self._work.tasks.cancel(with_cell=True)
