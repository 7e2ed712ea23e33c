"""Connects the memory guard to this kernel: cells and fits go in, messages to the user come out."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...batch_place import IN_ARGUMENT
from ...errors import SourceUnavailable
from ...kept_data import Holder
from ...record.events import Emit, MemoryStopped
from ...shield import shielded
from ...training.fit_hooks import FitHooks
from ...units import MIB, human_bytes
from ..capture.stacks import free_signal
from ..cells.arrays import largest_arrays
from ..cells.growing import CellHolders
from ..cells.growth_alarm import GrowthAlarm
from ..cells.reachable import fit_objects
from .callbacks import Callbacks

if TYPE_CHECKING:
    from ...guard.memory_guard import MemoryGuard
    from ...guard.stop_texts import CellFacts
    from ...guard.stops import Stop
    from ...guard.weights import WeightGuard
    from ...training.progress import FitProgress
    from .loop_saver import LoopSaver

_SHOWN_HOLDERS = 3
# Of the limit; smaller holders are not worth a sentence: what IPython keeps of earlier cells, and any if a single request was
# too large.
_OLD_FRACTION = 0.1
_REFUSED_FRACTION = 0.2
# A cell that added less found the memory full; so did a request that left less.
_FULL_FRACTION = 0.25
# Available memory for the longest search, and as a fraction of what was available at its beginning.
_SEARCH_BYTES, _SEARCH_FRACTION = 12 * MIB, 0.75
_ADDED_FRACTION = 0.02  # of what the cell added
_SHARE_OF_LARGEST = 0.1
# A batch that is too large already fills the memory in one of the first steps.
_SETTLED_STEPS = 4
_KERAS = {"keras", "tf_keras"}
_PART_NAMES = {
    "disk": "blocks on disk",
    "fourier": "Fourier transforms",
    "numpy": "NumPy",
    "pandas": "pandas",
    "pool": "memory that TensorFlow has freed, which only TensorFlow can use then",
    "python": "Python",
    "sklearn": "scikit-learn",
    "tensorflow": "TensorFlow",
}


class MemoryStop:
    """Stops cells that are about to fill the memory, if the options say so.

    Args:
        level: The option ``TfGuard.stop``.
        shell: The IPython shell.
        emit: Writes an event to the journal.
        fit: The newest fit; None if there was none.
        alarm: Follows the memory from step to step and from fit to fit.

    Attributes:
        guard: The memory guard; None while it is not running.
        latest: The event of the newest stop or refusal; None if there was none.
    """

    def __init__(
        self,
        level: str,
        shell: Any,
        emit: Emit,
        fit: Callable[[], FitProgress | None],
        alarm: GrowthAlarm,
    ) -> None:
        self._alarm = alarm
        self._level = level
        self._shell = shell
        self._emit = emit
        self._fit = fit
        self.guard: MemoryGuard | None = None
        self._why_not: str | None = None
        self._weights: WeightGuard | None = None  # None until Keras is imported
        self.latest: MemoryStopped | None = None
        self._cell_holders = CellHolders(shell.user_ns)
        self._held: list[Holder] = []  # of the newest stop
        self._callbacks: Callbacks | None = None
        self._loop_saver: LoopSaver | None = None

    def start(self) -> None:
        """Start the memory guard. Where it is not possible, :meth:`state` says why."""
        if self._level == "off":
            return
        # Imported only here: a kernel with the option off does without.
        from ...guard.memory_guard import MemoryGuard
        from ...guard.native import PARTS, SOFT_PARTS

        guard = MemoryGuard(
            self._shell.user_ns,
            self._facts,
            gate=PARTS if self._level == "full" else SOFT_PARTS,
            in_fit=lambda: self._running_fit() is not None,
            code_name=self._shell.compile.format_code_name,
        )
        try:
            guard.start(free_signal())
        except SourceUnavailable as absent:
            self._why_not = str(absent)
            return
        self.guard = guard
        self.imported()

    def watch_callbacks(self) -> None:
        """Watch the callbacks of widgets, which run outside of cells."""
        if self.guard is not None:
            kernel = getattr(self._shell, "kernel", None)
            self._callbacks = Callbacks(kernel, self.guard, partial(self._report, None))
            self._callbacks.start()

    def unwatch_callbacks(self) -> None:
        """Undo :meth:`watch_callbacks`."""
        if self._callbacks is not None:
            self._callbacks.stop()

    def hook_tracebacks(self) -> None:
        """Prepare the traceback of a stopped cell: IPython has no event between the end of the user's code and the traceback."""
        guard, shown = self.guard, self._shell.showtraceback
        if guard is None:
            return

        def showtraceback(*args: Any, **kwargs: Any) -> Any:
            with shielded("traceback of a stopped cell"):
                if (error := sys.exc_info()[1]) is not None:
                    guard.shows(error)
                    if self._loop_saver is not None:
                        self._loop_saver.before_shown(error)
            return shown(*args, **kwargs)

        self._shell.showtraceback = showtraceback

    def fit_hooks(self) -> FitHooks:
        """The hooks to run around each fit."""
        if self.guard is None:
            return FitHooks()
        from .fit_guard import FitGuard

        return FitGuard(self.guard, self._emit)

    def keep(self, model: Any, optimizer: Any) -> None:
        """Save the model of a training loop if the guard stops the running cell."""
        if self.guard is None:
            return
        if self._loop_saver is None:
            from .loop_saver import LoopSaver

            self._loop_saver = LoopSaver(self.guard, self._emit)
        self._loop_saver.keep(model, optimizer)

    def state(self) -> dict[str, Any]:
        """For the header of the recording: ``{"state", "level", "stop_bytes", "notes", "patched"}``.

        State: on, paused, off or unavailable. Notes: what does not work here and why, a sentence each. Patched: whose
        memory functions the guard has replaced; a crash report names them.
        """
        if self._level == "off":
            state = "off"
        elif self.guard is None:
            state = "unavailable"
        else:
            state = "paused" if self.guard.paused else "on"
        return {
            "state": state,
            "level": self._level,
            "stop_bytes": None if self.guard is None else self.guard.stop_bytes,
            "notes": self._notes(),
            "patched": [] if self.guard is None else _patched(self.guard),
        }

    def _notes(self) -> list[str]:
        if self.guard is None:
            return [] if self._why_not is None else [self._why_not]
        return [
            f"Not active for {_PART_NAMES.get(name, name)}: {reason}"
            for name, reason in self.guard.parts.items()
            if reason
        ]

    def text(self) -> str:
        """The state as a sentence."""
        state = self.state()
        if state["state"] == "on":
            left = human_bytes(state["stop_bytes"])
            return f"Stop: a cell is stopped when less than {left} of memory is left"
        if state["state"] == "paused":
            return "Stop: paused. %tfguard resume switches it on"
        if state["state"] == "off":
            return "Stop: off, by the option TfGuard.stop"
        return f"Stop: not possible on this system: {self._why_not}"

    def cell_begins(self) -> None:
        """Notify the guard that a cell begins, and report a stop since the last cell."""
        self._held = []
        if self.guard is None:
            return
        with shielded("what holds memory"):
            self._cell_holders.begin()
        if self._loop_saver is not None:
            self._loop_saver.cell_begins()
        if (stop := self.guard.cell_begins()) is not None:
            print(stop.text, file=sys.stderr)
            self._report(None, stop)

    def cell_ends(self, count: int | None, error: BaseException | None) -> None:
        """Notify the guard that a cell has ended, and report a stop.

        Args:
            count: The number of the cell.
            error: The exception that ended the cell, if any.
        """
        if self.guard is None:
            return
        if self.guard.was_stopped and hasattr(self._shell, "InteractiveTB"):
            # IPython keeps the traceback, and with it what the functions on it hold.
            self._shell.InteractiveTB.tb = None
        stop = self.guard.cell_ends(error)
        if stop is None:
            return
        is_shown = error is None or stop.printed_in(error) is not None
        if self._loop_saver is not None and not stop.is_beside:
            self._loop_saver.after_stop(error)
            stop = self.guard.stops.of_cell or stop
        if stop.is_beside or not is_shown:
            # The exception that the user sees does not mention the limit.
            print(stop.text, file=sys.stderr)
        self._report(count, stop)

    def _report(self, count: int | None, stop: Stop) -> None:
        event = MemoryStopped(
            execution_count=count,
            what=stop.what,
            lines=tuple(stop.lines),
            seconds=stop.seconds,
            available_bytes=stop.available_bytes,
            limit_bytes=stop.total_bytes,
            holders=tuple(self._held),
        )
        self.latest = replace(event, time=stop.time)
        self._emit(event)

    def imported(self) -> None:
        """Notify the guard that a library was imported."""
        if self.guard is None:
            return
        self.guard.imported()
        if self._weights is None and not _KERAS.isdisjoint(sys.modules):
            from ...guard.weights import WeightGuard

            self._weights = WeightGuard(self.guard)
        if self._weights is not None:
            self._weights.attach()

    def pause(self) -> None:
        """Stop no cell until :meth:`resume`."""
        if self.guard is not None:
            self.guard.pause()

    def resume(self) -> None:
        """Stop cells again."""
        if self.guard is not None:
            self.guard.resume()

    def stop(self) -> None:
        """Stop the memory guard."""
        guard, self.guard = self.guard, None
        if guard is not None:
            guard.stop()

    def unhook_tracebacks(self) -> None:
        """Undo :meth:`hook_tracebacks`."""
        if self.guard is not None:
            vars(self._shell).pop("showtraceback", None)

    def detach_weights(self) -> None:
        """Restore the methods of Keras that make weights."""
        weights, self._weights = self._weights, None
        if weights is not None:
            weights.detach()

    def before_fork(self) -> None:
        """Free memory that a child shares could not be given back as long as the child runs."""
        if self.guard is not None and self.guard.is_watching:
            self.guard.give_back_if_short()

    def leave_child(self) -> None:
        """Detach the guard in a forked child."""
        if self.guard is not None:
            self.guard.leave_child()

    def _running_fit(self) -> FitProgress | None:
        fit = self._fit()
        return fit if fit is not None and fit.active and not fit.is_loop else None

    def _loop_step(self) -> int | None:
        loop = self._fit()
        return loop.step if loop is not None and loop.active and loop.is_loop else None

    def _hurry(self) -> Callable[[], bool]:
        guard = self.guard
        if guard is None:
            return lambda: False
        first = guard.available_bytes()
        return lambda: _is_short(guard.available_bytes(), first)

    def _facts(self, added_bytes: int | None) -> CellFacts:
        from ...guard.stop_texts import CellFacts

        running, guard = self._running_fit(), self.guard
        facts = CellFacts(
            arrays=largest_arrays(self._shell.user_ns),
            fit=None if running is None else running.what,
            batch_size=None if running is None else running.batch_size,
            loop_step=self._loop_step(),
            finished_rows=None if running is None else _finished_rows(running),
            batch_place=IN_ARGUMENT if running is None else running.batch_place,
            kept_data=() if running is None else running.kept_data,
            keeps_between_steps=2 * self._alarm.floor.rise_bytes >= (added_bytes or math.inf),
        )
        with shielded("what holds memory"):
            total = 0 if guard is None else guard.limit().size_bytes
            # A request may have been refused because of what earlier cells hold.
            left = 0 if guard is None else guard.available_bytes()
            was_full = (left if added_bytes is None else added_bytes) < _FULL_FRACTION * total
            held = self._cell_holders.found(
                fit_objects(running), added_bytes, self._hurry(), was_full=was_full
            )
            held += [] if (models := self._alarm.models()) is None else [models]
            self._held = worth_naming(held, added_bytes, total)
            return facts._replace(holders=self._held, was_full=was_full)
        return facts


def _is_short(available_bytes: int, first_bytes: int) -> bool:
    """True if a search of some ten milliseconds and megabytes is too much now, because memory still fills."""
    return available_bytes < max(_SEARCH_BYTES, _SEARCH_FRACTION * first_bytes)


def worth_naming(held: list[Holder], added_bytes: int | None, total_bytes: int) -> list[Holder]:
    """The largest ones.

    Args:
        held: What was found.
        added_bytes: Memory that the cell added; None for a single request that was refused.
        total_bytes: The limit.
    """
    least = _ADDED_FRACTION * added_bytes if added_bytes else _REFUSED_FRACTION * total_bytes
    least_if_old = max(_OLD_FRACTION * total_bytes, least, added_bytes or 0)
    found = [
        one for one in held if (one.added_bytes or 0) >= (least_if_old if one.is_old else least)
    ]
    found.sort(key=lambda one: -(one.added_bytes or 0))
    least = _SHARE_OF_LARGEST * max((one.added_bytes or 0 for one in found), default=0)
    return [one for one in found if (one.added_bytes or 0) >= least][:_SHOWN_HOLDERS]


def _finished_rows(running: FitProgress) -> int | None:
    """Rows of which outputs are kept; None if they are too few to be the cause, or unknown."""
    done = running.completed_step or 0
    if running.batch_size is None or done < _SETTLED_STEPS:
        return None
    return running.batch_size * done


def _patched(guard: MemoryGuard) -> list[str]:
    armed = {name for name, reason in guard.parts.items() if reason is None}
    named = {"TensorFlow" if name == "pool" else _PART_NAMES.get(name, name) for name in armed}
    return sorted(named)
