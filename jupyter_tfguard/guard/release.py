"""Frees the objects of a stopped cell."""

from __future__ import annotations

import contextlib
import gc
import queue
import sys
import threading
import time
from collections.abc import Iterator
from types import CellType, FrameType, MethodType
from typing import Any

from ..shield import shielded
from .error import cut_tracebacks

_ERRORS, _TRACEBACK = ("last_value", "last_exc"), "last_traceback"
# A model's iterator over the validation data of the running fit, in Keras 3 and Keras 2. The next fit makes a new one.
_VALIDATION = ("_eval_epoch_iterator", "_eval_data_handler")
_OPS, _FUNCTIONS = "tensorflow.python.framework.ops", "_py_funcs_used_in_graph"
_ADAPTERS = "keras.src.trainers.data_adapters."
_THREAD_SECONDS = 1.0
_AGAIN_SECONDS = (0.5, 3.0)
_REACHED = 16  # objects from a function to the adapter


def release(error: BaseException | None) -> None:
    """Free the objects that only the ended cell referenced. `error`: the exception that ended it, which was shown."""
    cut_tracebacks(error)
    for name in _ERRORS:
        cut_tracebacks(getattr(sys, name, None))
    if hasattr(sys, _TRACEBACK):
        setattr(sys, _TRACEBACK, None)
    gc.collect()
    with shielded("freeing the data of a stopped fit"):
        if _drop_adapters():
            gc.collect()
            threading.Thread(target=_collect_again, name="tfguard-collect", daemon=True).start()


def _collect_again() -> None:
    # A native thread that is still in a call holds the data until the call ends, and then nothing collects the cycle.
    for seconds in _AGAIN_SECONDS:
        time.sleep(seconds)
        gc.collect()


def release_validation(model: Any) -> None:
    """Free the validation data of a stopped fit."""
    for name in _VALIDATION:
        if getattr(model, name, None) is not None:
            setattr(model, name, None)


def _drop_adapters() -> bool:
    """Let TensorFlow forget the data of fits that have ended; True if there were any.

    TensorFlow keeps each Python function that a data set calls for as long as the default graph exists. For a generator or
    PyDataset that was passed to ``fit``, Keras makes such a data set, whose functions hold the generator. Covers Keras 3.
    """
    ops = sys.modules.get(_OPS)
    functions = None if ops is None else getattr(ops.get_default_graph(), _FUNCTIONS, None)
    if not functions:
        return False
    callers = [(one, adapter) for one in functions if (adapter := _adapter_of(one)) is not None]
    adapters = list({id(adapter): adapter for _, adapter in callers}.values())
    used = _used(adapters, callers)
    for adapter in adapters:
        if id(adapter) not in used:
            with shielded("stopping the workers of a PyDataset"):
                _end_workers(adapter)
    for one, adapter in callers:
        if id(adapter) not in used:
            with contextlib.suppress(ValueError):  # another thread has cleared the list
                functions.remove(one)
    return len(used) < len(adapters)


def _end_workers(adapter: Any) -> None:
    """End the threads or processes that prepare batches of a PyDataset; they hold it while they wait for a place in their queue."""
    enqueuer = getattr(adapter, "enqueuer", None)
    if enqueuer is None:
        return
    thread = enqueuer.run_thread
    enqueuer.stop(drain_queue_and_join=False)
    with contextlib.suppress(queue.Empty):
        while True:
            enqueuer.future_queue.get_nowait()
    if thread is not None:
        thread.join(_THREAD_SECONDS)


def _adapter_of(function: Any) -> Any:
    """Keras' adapter of a generator or PyDataset that a function of a data set calls; None for other functions."""
    ahead = [function]
    for _ in range(_REACHED):
        if not ahead:
            return None
        one = ahead.pop(0)
        if type(one).__module__.startswith(_ADAPTERS):
            return one
        ahead += _held_by(one)
    return None


def _held_by(one: Any) -> Iterator[Any]:
    # "_generator" is of TensorFlow's state of a data set from a generator.
    for name in ("__wrapped__", "__self__", "_generator"):
        if (held := getattr(one, name, None)) is not None:
            yield held
    for cell in getattr(one, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            yield cell.cell_contents


def _used(adapters: list[Any], callers: list[tuple[Any, Any]]) -> set[int]:
    """Ids of those that more than the functions of their data set refer to: a running fit, or the user's code."""
    if not adapters:
        return set()
    kinds = (CellType, MethodType, FrameType)
    ours = {id(one) for one in (adapters, callers, *callers)}
    ids = {id(one) for one in adapters}
    return {
        id(held)
        for one in gc.get_referrers(*adapters)
        if id(one) not in ours and not isinstance(one, kinds)
        for held in gc.get_referents(one)
        if id(held) in ids
    }
