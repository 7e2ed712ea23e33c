"""Stops running TensorFlow functions from another thread, with TensorFlow's cancellation managers.

A compiled function runs in native code, where no Python exception can be raised; the shuffle buffer of a data set used
in ``fit`` fills there for minutes. Under a cancellation manager the function returns within milliseconds of the
cancellation. So does the eager operation that takes the next element of a data set, if the data set calls a function.
Other eager operations cannot be cancelled.

A function that fails cancels its manager, also when it only reaches the end of a data set. So no two running calls share
one: under a common one, every later call of the cell and the calls of other threads would be cancelled too. A new manager
costs 8 to 15 microseconds, so one whose call has ended without a failure serves the next call of its thread.

Source: tensorflow/python/eager/cancellation.py and execute.py, the same from 2.15 to 2.21.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Collection
from typing import Any

from ..shield import shielded

_MODULE = "tensorflow.python.eager.cancellation"
_OPERATIONS = "tensorflow.python.ops.gen_dataset_ops"
_NEXT = "iterator_get_next"


class CancellableCalls:
    """Takes the place of a ``CancellationManager`` while a cell runs, with one of its own for each running call.

    Args:
        new_manager: TensorFlow's class.
        managers: Those so far, by thread, as many as its calls are nested; new ones are added.
    """

    _idle_count = 0  # references to a manager that has no call; a running call holds one more

    def __init__(self, new_manager: Callable[[], Any], managers: dict[int, list[Any]]) -> None:
        self._new_manager = new_manager
        self._managers = managers
        self._cancelled: set[int] = set()  # threads

    @property
    def _impl(self) -> Any:
        """Read by TensorFlow for each call: the manager in native code."""
        thread = threading.get_ident()
        for manager in self._managers.get(thread, ()):
            if sys.getrefcount(manager._impl) == self._idle_count and not manager.is_cancelled:
                break
        else:
            manager = self._add(thread)
        if thread in self._cancelled:
            manager.start_cancel()
        return manager._impl

    def _add(self, thread: int) -> Any:
        manager = self._new_manager()
        CancellableCalls._idle_count = sys.getrefcount(manager._impl)
        kept = [one for one in self._managers.get(thread, ()) if not one.is_cancelled]
        self._managers[thread] = [*kept, manager]
        return manager

    def cancel(self, threads: Collection[int]) -> None:
        """Stop the running functions of some threads, and any that start there later. `threads`: their ids."""
        self._cancelled.update(threads)
        for thread in threads:
            for manager in list(self._managers.get(thread, ())):
                manager.start_cancel()


class Cancellation:
    """Makes the functions of the running cell cancellable; does nothing while TensorFlow is not imported.

    Args:
        instead_of: Returns the exception to raise for that of a cancelled operation.

    Attributes:
        calls: The calls of this cell; None if they cannot be cancelled.
    """

    def __init__(self, instead_of: Callable[[BaseException], BaseException]) -> None:
        self._instead_of = instead_of
        self.calls: CancellableCalls | None = None
        # Of all cells: a call in another thread may have begun before the cell in which it fills the memory.
        self._managers: dict[int, list[Any]] = {}
        self._next: Any = None  # TensorFlow's function that ours replaces

    def begin(self) -> None:
        """Make the functions of this cell cancellable. If the user has set a manager, it stays in use."""
        module = sys.modules.get(_MODULE)
        if module is not None and getattr(module, "_active_context", self) is None:
            for thread in self._managers.keys() - sys._current_frames().keys():
                del self._managers[thread]
            self.calls = CancellableCalls(module.CancellationManager, self._managers)
            module._active_context = self.calls  # type: ignore[attr-defined]
            operations = sys.modules.get(_OPERATIONS)
            self._next = getattr(operations, _NEXT, None)
            if self._next is not None:
                setattr(
                    operations, _NEXT, _cancellable_next(self._next, self.calls, self._instead_of)
                )

    def renew(self) -> None:
        """Let functions run again after they were cancelled."""
        self.end()
        self.begin()

    def end(self) -> None:
        """Undo :meth:`begin` at the end of the cell."""
        module = sys.modules.get(_MODULE)
        if module is not None and getattr(module, "_active_context", None) is self.calls:
            module._active_context = None  # type: ignore[attr-defined]
        if self._next is not None:
            setattr(sys.modules[_OPERATIONS], _NEXT, self._next)
        self.calls = self._next = None


def _cancellable_next(
    original: Any, calls: CancellableCalls, instead_of: Callable[[BaseException], BaseException]
) -> Any:
    """TensorFlow's function that takes the next element of a data set, under a cancellation manager in eager code."""
    context = sys.modules["tensorflow.python.eager.context"]
    execute = sys.modules["tensorflow.python.eager.execute"]

    @functools.wraps(original)
    def iterator_get_next(
        iterator: Any, output_types: Any, output_shapes: Any, name: str | None = None
    ) -> Any:
        if not context.executing_eagerly():
            return original(iterator, output_types, output_shapes, name)
        try:
            return execute.execute_with_cancellation(
                "IteratorGetNext",
                len(output_types),
                inputs=[iterator],
                attrs=("output_types", output_types, "output_shapes", output_shapes),
                ctx=context.context(),
                cancellation_manager=calls,
            )
        except Exception as error:
            if threading.current_thread() is threading.main_thread() and is_cancelled_error(error):
                raise instead_of(error) from None
            if isinstance(message := getattr(error, "_message", None), str):
                error._message = f"{message} name: {name or ''}"  # type: ignore[attr-defined] # as the original does
            raise error from None

    return iterator_get_next


def is_cancelled_error(error: BaseException) -> bool:
    """True for TensorFlow's error of a cancelled function."""
    return any(
        kind.__name__ == "CancelledError" and kind.__module__.startswith("tensorflow.")
        for kind in type(error).__mro__
    )


def cancel(calls: CancellableCalls | None, threads: Collection[int]) -> None:
    """Stop the functions of some threads. Does nothing if `calls` is None."""
    if calls is not None:
        with shielded("cancelling TensorFlow functions"):
            calls.cancel(threads)
