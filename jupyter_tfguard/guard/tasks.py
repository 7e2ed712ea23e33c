"""Ends what a stopped cell has left on the event loop of the main thread: tasks, and callbacks of its functions.

A cell that awaits runs on the kernel's own loop, and so do its tasks. An exception ends one task only. The others, and
functions that the cell has scheduled with ``call_later``, would go on filling memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from ..shield import shielded
from .error import release_frames

# The kernel's own tasks, by the files of their coroutines.
_OF_KERNEL = (
    "/ipykernel/",
    "/IPython/",
    "/jupyter_client/",
    "/jupyter_tfguard/",
    "/tornado/",
    "/zmq/",
)
_RUNS_CELL = (
    "run_cell_async"  # IPython's coroutine; ipykernel wraps it into a task if the cell awaits
)
_CANCELLED = "tfguard stopped the cell that started this task"
_PAUSE_SECONDS, _PAUSES = 0.01, 3  # for cancelled tasks to end


class CellTasks:
    """The tasks and callbacks of the running cell. Use it in the main thread only.

    Args:
        namespace: The globals of the user's cells.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._forget()

    def _forget(self) -> None:
        self._loop: Any = None
        self._older: list[weakref.ref[Any]] = []
        self._older_functions: set[int] = set()
        self._cell: Any = None  # the task of the cell itself
        self._ended: list[Any] = []  # tasks whose frames are to be released

    def begin(self) -> None:
        """Note what exists at the start of a cell; takes some microseconds."""
        self._forget()
        with contextlib.suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        if self._loop is None:
            return
        self._older = [weakref.ref(one) for one in asyncio.all_tasks(self._loop)]
        self._older_functions = {id(function) for _, function in self._callbacks()}
        current = asyncio.current_task(self._loop)
        if getattr(_code(current), "co_name", None) == _RUNS_CELL:
            self._cell = current

    def note(self) -> None:
        """Keep the tasks whose frames have to be released when they have ended."""
        self._ended += [one for one in self._mine() if one not in self._ended]

    def cancel(self, *, with_cell: bool = False) -> int:
        """Cancel the tasks and the callbacks that the cell has started.

        Args:
            with_cell: Whether to end the cell's own ``await`` as well.

        Returns:
            Their number.
        """
        count = 0
        with shielded("cancelling the tasks of a stopped cell"):
            self.note()
            current = None if self._loop is None else asyncio.current_task(self._loop)
            for task in self._mine():
                if task is not current:
                    task.cancel(_CANCELLED)
                    count += 1
            for handle, function in self._callbacks():
                if id(function) not in self._older_functions:
                    handle.cancel()
                    count += 1
            if with_cell and self._cell is not None and not self._cell.done():
                self._cell.cancel(_CANCELLED)
        return count

    @property
    def is_in_one(self) -> bool:
        """True in one of the cell's tasks, which an asyncio.CancelledError ends."""
        current = None if self._loop is None else asyncio.current_task(self._loop)
        return current is not None and any(one is current for one in self._mine())

    @property
    def is_awaiting(self) -> bool:
        """True while the cell is a task of the loop, which may wait for something."""
        return self._cell is not None and not self._cell.done()

    def has_notebook(self) -> bool:
        """True if a task or callback of the notebook's functions waits on the loop."""
        if self._loop is None:
            return False
        return any(_runs(one, self._namespace) for one in asyncio.all_tasks(self._loop)) or any(
            True for _ in self._callbacks()
        )

    @property
    def names(self) -> list[str]:
        """Names of the coroutines of the cell's tasks that have not ended."""
        return [getattr(_code(one), "co_name", "task") for one in self._mine()]

    def later(self, seconds: float, function: Callable[[], object]) -> None:
        """Call a function from the loop."""
        if self._loop is not None:
            self._loop.call_later(seconds, _guarded, function)

    def release_soon(self, give_back: Callable[[], object]) -> None:
        """Release the frames of the ended tasks when the cancelled ones have ended, some milliseconds later.

        Args:
            give_back: Called after that.
        """
        ended, self._ended = self._ended, []
        self._release(ended)
        if not ended or self._loop is None:
            return
        loop = self._loop

        def again(pauses: int) -> None:
            self._release(ended)
            if pauses and ended:
                loop.call_later(_PAUSE_SECONDS, again, pauses - 1)
            else:
                ended.clear()
                _guarded(give_back)

        loop.call_later(_PAUSE_SECONDS, again, _PAUSES)

    @staticmethod
    def _release(tasks: list[Any]) -> None:
        with shielded("freeing memory after a stop"):
            for task in [one for one in tasks if one.done()]:
                tasks.remove(task)
                release_frames(_error_of(task))

    def _mine(self) -> list[Any]:
        if self._loop is None:
            return []
        older = {reference() for reference in self._older}
        return [
            one
            for one in asyncio.all_tasks(self._loop)
            if one not in older and one is not self._cell and not _is_of_kernel(one)
        ]

    def _callbacks(self) -> Iterator[tuple[Any, Any]]:
        """The handles on the loop that call functions of the notebook, with these."""
        loop = self._loop
        for handle in (*getattr(loop, "_scheduled", ()), *getattr(loop, "_ready", ())):
            function = getattr(handle, "_callback", None)
            function = getattr(function, "func", function)  # of a partial
            function = getattr(function, "__func__", function)  # of a method
            if getattr(function, "__globals__", None) is self._namespace:
                yield handle, function


def loop_of(frame: FrameType | None) -> Any:
    """The event loop that runs in the thread of this frame; None if there is none."""
    while frame is not None:
        if frame.f_code.co_name == "run_forever":
            loop = frame.f_locals.get("self")
            return loop if isinstance(loop, asyncio.AbstractEventLoop) else None
        frame = frame.f_back
    return None


def cancel_notebook(loop: Any, namespace: Mapping[str, Any]) -> None:
    """Cancel the tasks of the notebook's functions on a loop. Call it on the loop, in its thread."""
    with shielded("cancelling the tasks of a stopped cell"):
        for task in asyncio.all_tasks(loop):
            if _runs(task, namespace):
                task.cancel(_CANCELLED)


def _runs(task: Any, namespace: Mapping[str, Any]) -> bool:
    """True for a task of a coroutine of the notebook."""
    return getattr(getattr(task.get_coro(), "cr_frame", None), "f_globals", None) is namespace


def _code(task: Any) -> Any:
    coroutine = None if task is None else task.get_coro()
    return getattr(coroutine, "cr_code", None) or getattr(coroutine, "gi_code", None)


def _is_of_kernel(task: Any) -> bool:
    file = getattr(_code(task), "co_filename", "").replace("\\", "/")
    return any(part in file for part in _OF_KERNEL)


def _error_of(task: Any) -> BaseException | None:
    try:
        error: BaseException | None = task.exception()
    except asyncio.CancelledError as cancelled:
        return cancelled
    return error


def _guarded(function: Callable[[], object]) -> None:
    with shielded("ending the tasks of a stopped cell"):
        function()
