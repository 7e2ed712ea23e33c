"""Records ``fit``, ``evaluate`` and ``predict`` of the user's Keras, once it is imported.

Keras decorates these methods: the decorator's function removes Keras' frames from tracebacks and calls the original
method, which it keeps in its closure. The guard replaces the method in that closure with a wrapper that adds a callback
to those of the user. The methods of the class stay the same objects, so they pickle, print and compare as before, and
the wrapper's frame is removed from tracebacks together with those of Keras. If the guard's code fails, the fit runs as
it would without the guard. Exceptions of the fit pass unchanged.

Covers Keras 3, Keras 2 (TensorFlow 2.15) and tf_keras. Does not cover the graph mode of TensorFlow 1. Training without
``fit`` is in :mod:`.loops`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, ModuleType
from typing import Any

from ..record.events import Emit, Event, FitStart
from ..shield import is_users, note_problem, shielded
from . import loops
from .checkpoints import CheckpointWatch
from .fit_hooks import FitHooks
from .loops import LoopReader
from .models import ModelNumbers, describe_model
from .plan import FitPlan
from .progress import FitProgress, ProgressBoard
from .watch import FitWatch, make_callback_class

METHODS = ("fit", "evaluate", "predict")
# Code that calls `predict` a thousand times a minute would otherwise fill the journal and displace all other events.
_BURST_COUNT = 50
_RUNS_PER_SECOND = 1.0


# The variable of Keras' decorator with the path fragments whose frames it removes from tracebacks (Keras 2.15 to 3.15).
_HIDDEN_PATHS = "_EXCLUDED_PATHS"
_OUR_FILES = (__file__, loops.__file__)


@dataclass
class _Call:
    """One call of a wrapped method, with the arguments for the original method."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    watch: FitWatch | None = None
    refused: BaseException | None = None


class TrainingRecorder:
    """Records the training in this process.

    Args:
        emit: Writes an event to the journal.
        board: Writes the progress; closed with the recorder.
        memory: Returns the fields about memory of an event of a run that starts.
        hooks: Called before and after each run.

    Attributes:
        loops: Follows training without ``fit``.
    """

    def __init__(
        self,
        emit: Emit,
        board: ProgressBoard,
        memory: Callable[[], dict[str, Any]],
        hooks: FitHooks | None = None,
    ) -> None:
        self._emit = emit
        self.board = board
        self._memory = memory
        self._hooks = hooks or FitHooks()
        self._ids = itertools.count(1)
        self._models = ModelNumbers()
        self.loops = LoopReader(emit, board, self._ids, memory)
        self._running = threading.local()
        self._replaced: list[tuple[CellType, Any]] = []  # each with its original method
        self._hidden_decorators: list[dict[str, Any]] = []
        self._active = True
        self._allowed = float(_BURST_COUNT)
        self._allowed_at = time.monotonic()

    def attach(self, keras: ModuleType) -> None:
        """Attach to the model class of this Keras; idempotent."""
        callback_class = make_callback_class(keras.callbacks.Callback)
        found = [
            (name, place)
            for name in METHODS
            if (place := _find_cell(inspect.getattr_static(keras.Model, name))) is not None
        ]
        if not found:
            note_problem("tracking fit", "This version of Keras has no decorator to attach to.")
        for name, (decorated, cell) in found:
            original = cell.cell_contents
            if any(done is cell for done, _ in self._replaced):
                continue
            self._hide_frames(decorated.__globals__)
            cell.cell_contents = self._wrapper(name, original, callback_class)
            self._replaced.append((cell, original))
        with shielded("tracking training loops"):
            self.loops.attach(keras)

    def _hide_frames(self, decorator: dict[str, Any]) -> None:
        """Make Keras remove the wrappers' frames as well. `decorator`: the namespace of the decorator's module."""
        paths = decorator.get(_HIDDEN_PATHS)
        if isinstance(paths, tuple) and __file__ not in paths:
            decorator[_HIDDEN_PATHS] = (*paths, *_OUR_FILES)
            self._hidden_decorators.append(decorator)

    def detach(self) -> None:
        """Restore the methods and the paths."""
        self.silence()
        self.loops.detach()
        for cell, original in self._replaced:
            cell.cell_contents = original
        self._replaced.clear()
        for decorator in self._hidden_decorators:
            paths = decorator[_HIDDEN_PATHS]
            decorator[_HIDDEN_PATHS] = tuple(path for path in paths if path not in _OUR_FILES)
        self._hidden_decorators.clear()

    def silence(self) -> None:
        """Stop recording; also called in a forked child, whose fits are not recorded."""
        self._active = False
        self.loops.silence()
        self.board.close()

    def tick(self) -> None:
        """Write the progress of the steps; called by the sampling thread."""
        with shielded("tracking training loops"):
            self.loops.tick()
        self.board.flush()

    def _wrapper(self, what: str, original: Any, callback_class: Any) -> Any:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def run_and_record(model: Any, /, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            run = _Call(args, kwargs)
            # A run inside another, such as the validation of a fit, is part of it.
            is_ours = self._active and not getattr(self._running, "inside", False)
            if not is_ours or not self._begin(run, what, signature, callback_class, model):
                return original(model, *args, **kwargs)
            if run.refused is not None:
                if run.watch is not None:
                    run.watch.progress.refused = str(run.refused)
                self._end(run, model, run.refused)
                raise run.refused
            try:
                result = original(model, *run.args, **run.kwargs)
            except BaseException as error:
                raised = self._end(run, model, error)
                if raised is None or raised is error:
                    raise
                raise raised from None
            self._end(run, model, None)
            return result

        return run_and_record

    # --- one run

    def _begin(
        self, run: _Call, what: str, signature: inspect.Signature, callback_class: Any, model: Any
    ) -> bool:
        """Emit the start, and add our callback to the arguments; False if the run cannot be recorded."""
        try:
            bound = signature.bind(model, *run.args, **run.kwargs)
        except TypeError:
            return False  # wrong arguments: Keras raises a better error
        try:
            bound.apply_defaults()
            plan = FitPlan.of(bound.arguments)
            run.refused = self._hooks.refusal(what, plan, model)
            watch = self._start_watch(run, what, plan, model)
            self._hooks.begins(model, watch.progress)
            if "callbacks" in bound.arguments:
                position = list(signature.parameters).index("callbacks") - 1
                _add_callback(run, bound.arguments["callbacks"], position, callback_class(watch))
        except BaseException as error:
            self._end(run, model, error)
            if not isinstance(error, Exception) or is_users(error):
                raise
            note_problem(f"start of {what}", error)
            return False
        self._running.inside = True
        return True

    def _start_watch(self, run: _Call, what: str, plan: FitPlan, model: Any) -> FitWatch:
        described: dict[str, Any] = {}
        with shielded("describing a model"):
            described |= describe_model(model)
        described |= {"batch_size": plan.batch_size, "batch_place": plan.place}
        described |= {"epochs": plan.epochs, "steps": plan.steps}
        batch: dict[str, Any] = {"batch_shape": None, "batch_dtype": None}
        with shielded("describing a batch"):
            batch = {"batch_shape": plan.batch_shape, "batch_dtype": plan.batch_dtype}
        progress = FitProgress(next(self._ids), what, **described)
        emit = self._emit if self._may_emit() else _drop_event
        callbacks = _flat(plan.callbacks)
        progress.callbacks = tuple(callbacks)
        progress.data = (model, plan.x, plan.validation_data)
        with shielded("describing a data pipeline"):
            progress.kept_data = plan.kept_data()
        checkpoints = CheckpointWatch(callbacks, since=time.time())
        # Set first: from here on an exception of the user's signal handler may end the run at any moment.
        run.watch = watch = FitWatch(progress, self.board, emit, model, checkpoints)
        models: dict[str, Any] = {}
        if what == "fit":
            with shielded("numbering a model"):
                models = self._models.facts(model)
        emit(
            FitStart(
                fit_id=progress.fit_id,
                what=what,
                model_name=progress.model_name,
                parameter_count=progress.parameter_count,
                optimizer=progress.optimizer,
                batch_size=progress.batch_size,
                batch_place=progress.batch_place,
                epochs=progress.epochs,
                steps=progress.steps,
                kept_data=tuple(progress.kept_data),
                **batch,
                **models,
                **self._memory(),
            )
        )
        self.board.begin(progress)
        return watch

    def _may_emit(self) -> bool:
        """False for a run in a long series of short ones; only the progress of the newest one is recorded."""
        now = time.monotonic()
        refilled = self._allowed + (now - self._allowed_at) * _RUNS_PER_SECOND
        self._allowed, self._allowed_at = min(refilled, float(_BURST_COUNT)), now
        if self._allowed < 1.0:
            return False
        self._allowed -= 1.0
        return True

    def _end(self, run: _Call, model: Any, error: BaseException | None) -> BaseException | None:
        """End the run, and return the exception to raise."""
        self._running.inside = False
        raised = error
        if run.watch is not None:
            with shielded("end of a fit"):
                raised = self._hooks.ends(error, model, run.watch.progress)
            with shielded("end of a fit"):
                run.watch.ends(raised)
        return raised


def _add_callback(run: _Call, given: Any, position: int, callback: Any) -> None:
    if given is None:
        together: Any = [callback]
    elif isinstance(given, (list, tuple)):
        together = [*given, callback]
    elif hasattr(given, "on_train_begin") and not hasattr(given, "callbacks"):
        together = [given, callback]
    else:
        return  # a CallbackList or another structure: passed to Keras unchanged
    if position < len(run.args):
        run.args = (*run.args[:position], together, *run.args[position + 1 :])
    else:
        run.kwargs = run.kwargs | {"callbacks": together}


def _find_cell(method: Any) -> tuple[Any, CellType] | None:
    """The decorator's function, and the closure cell that contains the method; None if it is not decorated."""
    while (inner := getattr(method, "__wrapped__", None)) is not None:
        for cell in getattr(method, "__closure__", None) or ():
            if (
                cell.cell_contents is inner
                or getattr(cell.cell_contents, "__wrapped__", None) is inner
            ):
                return method, cell
        method = inner
    return None


def _flat(callbacks: Any) -> list[Any]:
    """The user's callbacks as a flat list, given one, a list, or nested lists."""
    if not isinstance(callbacks, (list, tuple)):
        return [] if callbacks is None else [callbacks]
    return [found for item in callbacks for found in _flat(item)]


def _drop_event(event: Event) -> None:
    """Drop the event."""
