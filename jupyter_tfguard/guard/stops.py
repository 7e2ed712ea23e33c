"""Stopped and refused cells: their messages, and the newest one."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..memory.limits import Limit
from ..shield import shielded
from .beside_texts import beside_lines
from .children import children_of
from .dispatched import STILL_RUNS, wait_for_jax
from .error import is_refusal, printed
from .saving import find_save, frames_of, stack
from .snapshot import Snapshot
from .stop_texts import AS_THEY_WERE, SWITCH_OFF, CellFacts, StopMoment, refusal_lines, stop_lines


class Stop(NamedTuple):
    """One stopped cell.

    Attributes:
        time: Unix seconds.
        seconds: From the threshold to the exception; 0 for a refusal.
        available_bytes: Available memory at that time.
        total_bytes: The limit.
        lines: The text of the exception.
        what: ``stopped``, ``refused`` for a single request that was too large, ``not_started`` for a run that cannot fit,
            or ``beside`` for what an earlier cell had left running.
        is_beside: It stopped threads of earlier cells, and no cell.
    """

    time: float
    seconds: float
    available_bytes: int
    total_bytes: int
    lines: tuple[str, ...]
    what: str = "stopped"
    is_beside: bool = False

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    def printed_in(self, error: BaseException) -> BaseException | None:
        """The error with this text among those that are printed with an error; None if there is none."""
        return next((one for one in printed(error) if self.lines[0] in str(one)), None)


CELL, CALLBACK = "cell", "callback"


class WatchedCell(NamedTuple):
    """A watched cell.

    Attributes:
        total_bytes: The limit.
        available_bytes: Available memory when it began; None if unknown.
        is_over: The cell has ended, but something that a cell has started goes on.
        thread: Id of the thread that runs it; not the main thread's for a cell of a subshell.
        what: What it is: a cell or a callback.
    """

    total_bytes: int
    available_bytes: int | None = None
    is_over: bool = False
    thread: int = 0
    what: str = CELL

    def may_be_replaced(self) -> bool:
        """False while it runs in another thread: of two cells, the one that began first stays the one that is watched."""
        others = {one.ident for one in threading.enumerate()} - {threading.get_ident()}
        return self.is_over or self.thread not in others


class Stops:
    """Creates and stores the stops of one kernel.

    Args:
        facts: Returns the known facts about the running cell, given the bytes that it has added, if known.
        limit: Returns the binding limit.

    Attributes:
        last: The newest stop; None if there was none.
        of_cell: The stop of the newest cell; None if it was not stopped.
        is_composing: True while a message is being made.
        later: Lines for the next stop of this cell: the message of a refusal is made when the cell has ended.
    """

    def __init__(
        self, facts: Callable[[int | None], CellFacts], limit: Callable[[], Limit]
    ) -> None:
        self._facts, self._limit = facts, limit
        self.last: Stop | None = None
        self.of_cell: Stop | None = None
        self.is_composing = False
        self._unreported: Stop | None = None
        self.later: list[str] = []
        self._moment: StopMoment | None = None
        self._began = 0.0

    def cell_begins(self) -> None:
        """Reset `of_cell` at the start of a cell."""
        self.of_cell = self._moment = None
        self.later.clear()
        self._began = time.time()

    @contextlib.contextmanager
    def composing(self) -> Iterator[None]:
        """Make a message. It takes a while, and the stop is delivered only afterwards: a signal must not stop the guard."""
        self.is_composing = True
        try:
            yield
        finally:
            self.is_composing = False

    def poll(self, error: BaseException | None = None) -> None:
        """See which save runs, and what child processes hold, before either ends; for the next message.

        Args:
            error: The exception that ended the cell or the save, if it has ended.
        """
        if self._moment is not None or (error is not None and self.of_cell is not None):
            return
        with shielded("looking at a stopped cell"):
            frames = itertools.chain(frames_of(error), stack(sys._getframe()))
            saving = find_save(frames, self._began)
            self._moment = StopMoment(children_of(os.getpid()), saving)

    def reached(
        self, seen: Snapshot, cell: WatchedCell, error: BaseException | None = None
    ) -> Stop:
        """Record a stop because too little memory is available. `error`: as in :meth:`poll`."""
        left, wanted = seen.trip_available_bytes, seen.last_refused_bytes
        moment = self._seen(error)
        added = seen.trip_added_bytes
        if moment.children and cell.available_bytes is not None:
            # The sampler counts a page once for each process that shares it.
            added = min(added, cell.available_bytes - left)
        added = min(added, cell.total_bytes - max(0, left))
        limit = self._limit()
        lines = stop_lines(
            self._known_facts(added),
            limit,
            left,
            added,
            moment=moment,
            wanted_bytes=wanted if wanted > max(0, left) else None,
            is_first=self.last is None,
        )
        if cell.what != CELL:
            lines = tuple(line.replace(f"his {CELL}", f"his {cell.what}") for line in lines)
        return self._keep(round(seen.trip_seconds_ago, 4), left, limit.size_bytes, lines)

    def ended(self, seen: Snapshot, cell: WatchedCell, error: BaseException | None) -> None:
        """Record what ended the cell if its error does not mention it: that of a cancelled function, or of a refusal."""
        if self.of_cell is not None or error is None:
            return
        if seen.trip_count:
            self.reached(seen, cell, error)
        elif seen.last_refused_bytes and is_refusal(error):
            self.refused(seen, cell, error)

    def refused(
        self, seen: Snapshot, cell: WatchedCell, error: BaseException | None = None
    ) -> Stop:
        """Record that a cell ended because an allocation was refused. `error`: as in :meth:`poll`."""
        left, wanted = seen.last_refused_available_bytes, seen.last_refused_bytes
        limit = self._limit()
        lines = refusal_lines(
            self._known_facts(None),
            limit,
            left,
            wanted,
            moment=self._seen(error),
            is_first=self.last is None,
        )
        return self._keep(0.0, left, limit.size_bytes, lines, "refused")

    def hopeless(self, text: str, available_bytes: int, what: str = "not_started") -> Stop:
        """Record what was refused because it cannot fit. `text` says why. `what`: as in :class:`Stop`."""
        lines = tuple(text.splitlines())
        return self._keep(0.0, available_bytes, self._limit().size_bytes, lines, what)

    def beside(self, cell: WatchedCell, seen: Snapshot, names: Sequence[str]) -> Stop:
        """Record a stop of what earlier cells had left running.

        Args:
            cell: The watched cell.
            seen: The state of the sampler.
            names: Names of the threads, or of the function of a task or callback.
        """
        limit, left = self._limit(), seen.trip_available_bytes
        lines = beside_lines(
            names,
            limit,
            left,
            in_cell=not cell.is_over,
        )
        stop = self._keep(seen.trip_seconds_ago, left, limit.size_bytes, lines)
        self.last = self.of_cell = stop._replace(is_beside=True, what="beside")
        if cell.is_over:
            self._unreported = self.last
        return self.last

    def unreported(self) -> Stop | None:
        """The newest stop between cells, once."""
        stop, self._unreported = self._unreported, None
        return stop

    def runs_on(self, error: BaseException, text: str) -> None:
        """Note in the newest stop what goes on although the cell was stopped.

        Args:
            error: The exception that ended the cell, and will be printed.
            text: About what goes on.
        """
        if self.last is None:
            return
        ours = self.last.printed_in(error)
        lines = tuple(line.replace(AS_THEY_WERE, text) for line in self.last.lines)
        self.last = self.of_cell = self.last._replace(lines=lines)
        if ours is not None:
            ours.args = (self.last.text,)

    def add_line(self, raised: BaseException, text: str) -> None:
        """Add a line to the newest stop and its exception."""
        if self.last is None:
            return
        lines = _with(self.last.lines, text)
        self.last = self.of_cell = self.last._replace(lines=lines)
        raised.args = (self.last.text,)

    def _seen(self, error: BaseException | None) -> StopMoment:
        self.poll(error)
        moment, self._moment = self._moment, None
        return moment or StopMoment()

    def will_show(self, error: BaseException) -> None:
        """Call before the error that ended the cell is printed, which clears the variables of its frames.

        Waits for work that cannot be stopped; the message gets a line if it still runs.
        """
        self.poll(error)
        with shielded("waiting for JAX"):
            has_ended = wait_for_jax()
            ours = None if self.of_cell is None else self.of_cell.printed_in(error)
            if ours is not None and not has_ended:
                self.add_line(ours, STILL_RUNS)

    def _known_facts(self, added_bytes: int | None) -> CellFacts:
        with shielded("describing a stopped cell"):
            return self._facts(added_bytes)
        return CellFacts()

    def _keep(
        self, seconds: float, left: int, total: int, lines: tuple[str, ...], what: str = "stopped"
    ) -> Stop:
        lines = _with(lines, *self.later)
        self.later.clear()
        self.last = self.of_cell = Stop(time.time(), seconds, left, total, lines, what)
        return self.last


def _with(lines: tuple[str, ...], *more: str) -> tuple[str, ...]:
    """More lines of a message; the one about switching the stop off stays last."""
    last = [SWITCH_OFF] if SWITCH_OFF in lines else []
    return (*(line for line in lines if line != SWITCH_OFF), *more, *last)
