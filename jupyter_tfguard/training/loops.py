"""Follows training loops that call no ``fit``: loops with ``GradientTape``, ``train_on_batch``, whole epochs in a ``tf.function``.

Such a loop has no callbacks, and may run inside one call of native code. Its optimizer counts the updates, so the
sampling thread reads this counter every second or two. Nothing runs at a step. Total and loss of a loop are not known.

A loop begins with the second change that is seen in a cell (with the first if it is by one step: a jump alone may be a restored
checkpoint), and ends with the cell or when a ``fit`` begins. With several optimizers the one with the most steps is
shown. A counter in the memory of a GPU is not read: the loop then begins with the optimizer's first update, without a
number of steps.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from ..record.events import LOOP, Emit, FitEnd, LoopStart
from ..shield import shield
from .iterations import count_of, is_of_jax, is_on_accelerator, optimizer_name
from .progress import FitProgress, ProgressBoard

_PLACE = "tracking training loops"
READ_SECONDS = 1.0
SHOWN_SECONDS = 2.0  # once a loop is known; a read takes 0.4 ms of processor time
_OPTIMIZERS = 50  # at most, the newest
_READ_AT_ONCE = 3
_IN_TURN = 8  # of the others, while no loop is known
# The shown optimizer is replaced by one with this many times its steps, so that equal ones do not alternate.
_CLEARLY_MORE = 1.2
_NEAR_FRAMES = 12
# Methods that run once for each optimizer, by kind of base class: legacy of Keras 2, Keras 2, Keras 3.
_ONCE = (
    ("_create_all_weights", "__init__"),
    ("_build_index_dict", "_build_index_dict"),
    ("build", "build"),
)
_UPDATES = ("apply", "apply_gradients")


@dataclass(slots=True)
class _Followed:
    """One optimizer.

    Attributes:
        count: Its updates at the last read of this cell; None before the first.
        made: Updates seen in this cell.
        has_moved: A change was seen in this cell.
        begins_here: It was built in this cell, by its first update.
    """

    optimizer: weakref.ref[Any]
    count: int | None = None
    made: int = 0
    has_moved: bool = False
    begins_here: bool = False

    def start_over(self) -> None:
        """Forget what was seen so far."""
        self.count, self.made, self.has_moved, self.begins_here = None, 0, False, False

    def take(self, count: int) -> bool:
        """Take a new count; True if the optimizer is certainly training."""
        before, self.count = self.count, count
        if before is None or count <= before:
            return False
        is_certain = self.has_moved or count == before + 1
        self.made += count - before
        self.has_moved = True
        return is_certain


class LoopReader:
    """Follows the loops of this process.

    Args:
        emit: Writes an event to the journal.
        board: Writes the progress.
        ids: Numbers of the runs, shared with the fits.
        memory: Returns the fields about memory of an event of a run that starts.
    """

    def __init__(
        self,
        emit: Emit,
        board: ProgressBoard,
        ids: Iterator[int],
        memory: Callable[[], dict[str, Any]],
    ) -> None:
        self._emit = emit
        self._board = board
        self._ids = ids
        self._memory = memory
        self._followed: dict[int, _Followed] = {}
        self._keys = itertools.count()
        self._turn = itertools.count()
        self._replaced: list[tuple[type, str, Any, Any]] = []
        self._lock = threading.Lock()  # a loop begins in one thread and ends in another
        self._in_cell = False
        self._due = 0.0
        self._fits = 0
        self._leader: _Followed | None = None
        self._progress: FitProgress | None = None
        self._active = True

    # --- optimizers

    def attach(self, keras: ModuleType) -> None:
        """Learn of each optimizer of this Keras when it is built; idempotent."""
        optimizers = getattr(keras, "optimizers", None)
        legacy = getattr(optimizers, "legacy", None)
        for base in (getattr(optimizers, "Optimizer", None), getattr(legacy, "Optimizer", None)):
            found = _method_of(base)
            if found is None or any(found == (kind, name) for kind, name, _, _ in self._replaced):
                continue
            kind, name = found
            original = vars(kind)[name]
            wrapper = self._wrapper(original)
            setattr(kind, name, wrapper)
            self._replaced.append((kind, name, original, wrapper))

    def detach(self) -> None:
        """Restore the methods."""
        self.silence()
        for kind, name, original, wrapper in self._replaced:
            if vars(kind).get(name) is wrapper:
                setattr(kind, name, original)
        self._replaced.clear()

    def silence(self) -> None:
        """Follow no loop from here on."""
        self._active = False

    def _wrapper(self, original: Any) -> Any:
        note = shield(_PLACE)(self._built)

        @functools.wraps(original)
        def build_and_note(optimizer: Any, /, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            note(optimizer)
            return original(optimizer, *args, **kwargs)

        return build_and_note

    def _built(self, optimizer: Any) -> None:
        if not self._active:
            return
        key = next(self._keys)
        new = _Followed(weakref.ref(optimizer, lambda _: self._followed.pop(key, None)))
        new.begins_here = self._in_cell and _in_update(sys._getframe(1))
        self._followed[key] = new
        for old in list(self._followed)[:-_OPTIMIZERS]:
            self._followed.pop(old, None)
        self._due = 0.0  # read it before its first update

    # --- cells

    def cell_begins(self) -> None:
        """Count from here: what the optimizers did before is not part of this cell."""
        with self._lock:
            self._end(None)
            self._start_over()
            self._in_cell = True

    def cell_ends(self, error: BaseException | None) -> None:
        """End the loop, once the user's code has ended. `error`: the exception that ended the cell, if any."""
        leader = self._leader
        if self._progress is not None and leader is not None:
            self._read(leader)
        with self._lock:
            self._in_cell = False
            self._show()
            self._end(error)
            self._leader = None

    def _start_over(self) -> None:
        for one in list(self._followed.values()):
            one.start_over()
        self._leader, self._due = None, 0.0
        self._fits = self._board.fit_count

    # --- the sampling thread

    def tick(self) -> None:
        """Read the counters if it is time; called by the sampling thread."""
        now = time.monotonic()
        if not self._active or not self._in_cell or now < self._due:
            return
        if self._board.runs_fit or self._board.fit_count != self._fits:
            with self._lock:
                self._end(None)
                self._start_over()
            self._due = now + READ_SECONDS
            return
        self._due = now + (READ_SECONDS if self._leader is None else SHOWN_SECONDS)
        certain = [one for one in self._next_ones() if self._read(one)]
        with self._lock:
            if self._in_cell:
                self._take_lead(certain)
                self._show()

    def _next_ones(self) -> list[_Followed]:
        """The shown optimizer, those that have moved, those that were not read in this cell, and others in turn."""
        every = list(self._followed.values())
        first = sorted(every, key=lambda one: (not one.has_moved, one.count is not None))
        found = [] if self._leader is None else [self._leader]
        found += first[:_READ_AT_ONCE]
        for _ in range(_IN_TURN if self._leader is None else 1):
            if every:
                found.append(every[next(self._turn) % len(every)])
        return list({id(one): one for one in found}.values())

    def _read(self, one: _Followed) -> bool:
        """Read one counter; True if the optimizer is certainly training."""
        optimizer = one.optimizer()
        if optimizer is None:
            return False
        if is_on_accelerator(optimizer):
            return one.begins_here
        count = count_of(optimizer)
        if count is None:
            if is_of_jax(optimizer):
                self._due = 0.0  # try again soon: most of the time a step has it
            return False
        is_new, had_moved = one.count is None, one.has_moved
        is_certain = one.take(count)
        if is_new or (one.has_moved and not had_moved and not is_certain):
            self._due = 0.0  # others may be new, too; and after a jump the next change decides
        return is_certain

    def _take_lead(self, certain: list[_Followed]) -> None:
        """Begin the loop, or show another of its optimizers."""
        best = max(certain, key=lambda one: one.made, default=None)
        if best is None or best is self._leader:
            return
        if self._leader is not None and best.made <= _CLEARLY_MORE * self._leader.made:
            return
        optimizer = best.optimizer()
        if optimizer is None:
            return
        self._leader = best
        name = optimizer_name(optimizer)
        self._end(None)  # of another optimizer, whose steps are other numbers
        progress = FitProgress(next(self._ids), LOOP, optimizer=name, step=best.count)
        progress.finished_step = best.count
        self._progress = progress
        self._emit(LoopStart(fit_id=progress.fit_id, what=LOOP, optimizer=name, **self._memory()))
        self._board.begin(progress)

    def _show(self) -> None:
        if self._progress is not None and self._leader is not None:
            self._progress.step = self._progress.finished_step = self._leader.count

    def _end(self, error: BaseException | None) -> None:
        progress, self._progress = self._progress, None
        if progress is None:
            return
        self._board.end(progress)
        self._emit(FitEnd.of(progress.fit_id, error))


def _method_of(base: Any) -> tuple[type, str] | None:
    """The class and the name of the method that runs once for each optimizer; None if there is none."""
    for kind in reversed(getattr(base, "__mro__", ())):
        for marker, name in _ONCE:
            if marker in vars(kind) and name in vars(kind):
                return kind, name
    return None


def _in_update(frame: FrameType | None) -> bool:
    """True if an update of an optimizer is on the stack."""
    for _ in range(_NEAR_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in _UPDATES:
            return True
        frame = frame.f_back
    return False
