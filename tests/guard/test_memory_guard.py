"""The guard's signal handler and its helper, without a kernel."""

from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import Any

import pytest

from jupyter_tfguard.guard import helper
from jupyter_tfguard.guard.cancel import Cancellation
from jupyter_tfguard.guard.error import (
    RENDER,
    HostMemoryLimitInterrupt,
    HostMemoryLimitReached,
    plain_traceback,
)
from jupyter_tfguard.guard.memory_guard import MemoryGuard
from jupyter_tfguard.guard.snapshot import Snapshot
from jupyter_tfguard.guard.stop_texts import CellFacts
from jupyter_tfguard.guard.stops import Stop, WatchedCell

pytestmark = pytest.mark.quick


class SignalsWithoutEnd:
    """A native library that sends the next signal before the handler of the last one has read anything."""

    def __init__(self) -> None:
        self.guard = MemoryGuard({}, CellFacts)
        self.guard._native = self  # type: ignore[assignment]
        self.read_count = 0

    def exempt(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def snapshot(self) -> Snapshot:
        self.read_count += 1
        self.guard._main._on_signal(0, None)
        return Snapshot(tripped=True, delivered=False)


def test_a_signal_that_comes_while_its_handler_runs_does_not_nest() -> None:
    """On a busy machine the handler takes longer than the 10 ms between two signals."""
    sampler = SignalsWithoutEnd()
    for _ in range(2):
        sampler.guard._main._on_signal(0, None)
    assert sampler.read_count == 2


class Delivers:
    """A native library that counts deliveries."""

    def __init__(self, available_bytes: int = 0, free_bytes: int = 0) -> None:
        self.count = 0
        self._available_bytes, self._free_bytes = available_bytes, free_bytes

    def available_bytes(self) -> int:
        return self._available_bytes

    def give_back(self) -> None:
        self._available_bytes += self._free_bytes

    def delivered(self) -> None:
        self.count += 1


def frame_of(name: str, file: str) -> FrameType:
    """The frame of a function with this name, in this file."""
    namespace: dict[str, Any] = {"frame": sys._getframe}
    exec(compile(f"def {name}(): return frame()", file, "exec"), namespace)
    found: FrameType = namespace[name]()
    return found


@pytest.mark.parametrize("first_trip", [1, 3])
def test_only_where_ipython_catches_it_a_stop_is_an_interrupt_at_last(first_trip: int) -> None:
    """The first trips of a cell may have stopped threads of earlier cells."""
    cell = frame_of("run_code", "/lib/IPython/core/interactiveshell.py")
    task = frame_of("_run", "/lib/asyncio/events.py")
    for frame, last in ((cell, HostMemoryLimitInterrupt), (task, HostMemoryLimitReached)):
        guard = MemoryGuard({}, lambda added: CellFacts())
        guard._native = Delivers()  # type: ignore[assignment]
        trips = [Snapshot(trip_count=first_trip + more) for more in range(3)]
        kinds = [type(guard._deliver(seen, WatchedCell(1 << 30), frame)) for seen in trips]
        assert kinds == [HostMemoryLimitReached, HostMemoryLimitReached, last]


@pytest.mark.parametrize(
    ("available_mib", "free_mib", "is_stopped"),
    [(200, 0, False), (20, 0, True), (20, 180, False)],
    ids=["freed", "kept", "freed to malloc"],
)
def test_a_repeated_stop_is_dropped_if_the_cell_has_freed_memory(
    available_mib: int, free_mib: int, is_stopped: bool
) -> None:
    guard = MemoryGuard({}, lambda added: CellFacts())
    sampler = Delivers(available_mib << 20, free_mib << 20)
    guard._native = sampler  # type: ignore[assignment]
    seen = Snapshot(trip_count=2, trip_available_bytes=20 << 20, tripped=True)
    raised = guard._exception(WatchedCell(600 << 20), seen, sys._getframe())
    assert (raised is not None, sampler.count) == (is_stopped, 1)


def test_children_are_offered_to_the_killer_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Measuring who fills takes up to a tenth of a second. A child filled the rest meanwhile, and the kernel was killed."""
    order: list[str] = []

    class Measured(Exception):
        pass

    class Work:
        def who_fills(self, seconds: float) -> None:
            order.append("measured")
            raise Measured

    def offer() -> None:
        order.append("offered")

    monkeypatch.setattr(helper, "offer_children_first", offer)
    found = helper.StopHelper(
        Work(),  # type: ignore[arg-type]
        Cancellation(lambda error: error),
        lambda: False,
        lambda: (WatchedCell(1 << 30), Snapshot(tripped=True)),
        lambda cell, seen, names: None,
        lambda: None,
    )
    with pytest.raises(Measured):
        found._help()
    assert order == ["offered", "measured"]


def raised(error: BaseException, before: BaseException | None, cause: object = ...) -> Exception:
    """The error, raised while `before` was handled, from `cause`."""
    error.__context__ = before
    if cause is not ...:
        error.__cause__ = cause  # type: ignore[assignment]
    assert isinstance(error, Exception)
    return error


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no groups of errors")
def test_a_stop_is_printed_once_if_it_is_in_a_group_or_before_another_error() -> None:
    stop = Stop(0.0, 0.0, 1, 2, ("tfguard stopped this cell", "More."))
    reached = HostMemoryLimitReached(stop.text)
    group = ExceptionGroup("tasks", [ValueError(), ExceptionGroup("inner", [reached])])  # noqa: F821
    plain = raised(ValueError(), reached)
    setattr(plain, RENDER, list)
    in_group = raised(ValueError(), group)
    setattr(in_group, RENDER, list)
    cases = {
        reached: True,
        group: True,
        in_group: True,  # IPython lets Python print it
        plain: False,  # its traceback has no other errors
        raised(ValueError(), reached): True,
        raised(ValueError(), reached, cause=None): False,
        raised(ValueError(), None, cause=reached): True,
        ExceptionGroup("tasks", [ValueError()]): False,  # noqa: F821
    }
    for error, is_printed in cases.items():
        assert stop.printed_in(error) is (reached if is_printed else None), error
    text = "\n".join(plain_traceback(group))
    assert text.count("tfguard stopped this cell") == 1
    assert "Exception Group Traceback" in text or "ExceptionGroup: tasks (2 sub-exceptions)" in text
