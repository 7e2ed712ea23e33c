"""Which cancellation manager a call of a TensorFlow function gets."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from jupyter_tfguard.guard.cancel import CancellableCalls, Cancellation, cancel

pytestmark = pytest.mark.quick


class Manager:
    """As TensorFlow's."""

    def __init__(self) -> None:
        self._impl = object()
        self.is_cancelled = False

    def start_cancel(self) -> None:
        self.is_cancelled = True


class Managers:
    """Calls functions under the manager that they would get in TensorFlow."""

    def __init__(self) -> None:
        self.made: list[Manager] = []
        self.calls = CancellableCalls(self._new, {})

    def _new(self) -> Manager:
        self.made.append(Manager())
        return self.made[-1]

    def run(self) -> Iterator[Manager]:
        """One call: the manager while it runs."""
        held = self.calls._impl  # a call holds it as its argument
        yield next(one for one in self.made if one._impl is held)


def test_calls_one_after_the_other_share_a_manager() -> None:
    managers = Managers()
    before = len(managers.made)
    found = {id(one) for _ in range(100) for one in managers.run()}
    assert len(found) == 1
    assert len(managers.made) == before + 1


def test_a_call_in_a_call_and_one_of_another_thread_have_their_own() -> None:
    managers = Managers()
    found: list[Manager] = []
    for outer in managers.run():
        for inner in managers.run():
            beside = threading.Thread(target=lambda: found.extend(managers.run()))
            beside.start()
            beside.join()
            assert len({id(outer), id(inner), id(found[0])}) == 3


def test_a_manager_that_a_failed_call_has_cancelled_is_not_used_again() -> None:
    managers = Managers()
    for outer in managers.run():
        for failed in managers.run():
            failed.start_cancel()
        for inner in managers.run():
            assert not inner.is_cancelled
        assert not outer.is_cancelled


def test_all_that_run_and_all_that_start_later_are_cancelled() -> None:
    managers = Managers()
    for outer in managers.run():
        for inner in managers.run():
            managers.calls.cancel({threading.get_ident()})
            assert outer.is_cancelled
            assert inner.is_cancelled
    for later in managers.run():
        assert later.is_cancelled


def test_only_the_calls_of_some_threads_are_cancelled() -> None:
    managers = Managers()
    for here in managers.run():
        managers.calls.cancel({threading.get_ident() + 1})
        assert not here.is_cancelled
        managers.calls.cancel({threading.get_ident()})
        assert here.is_cancelled


def test_a_call_that_began_in_an_earlier_cell_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Manager] = []

    def new() -> Manager:
        made.append(Manager())
        return made[-1]

    module = SimpleNamespace(_active_context=None, CancellationManager=new)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.cancellation", module)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "tensorflow.python.ops.gen_dataset_ops", raising=False)
    cancellation, called, ended = (
        Cancellation(lambda error: error),
        threading.Event(),
        threading.Event(),
    )

    def call() -> None:
        held = module._active_context._impl  # type: ignore[attr-defined]
        called.set()
        ended.wait()
        del held

    cancellation.begin()
    thread = threading.Thread(target=call)
    thread.start()
    called.wait()
    cancellation.renew()  # the next cell
    cancel(cancellation.calls, [thread.ident or 0])
    ended.set()
    thread.join()
    cancellation.end()
    assert sum(one.is_cancelled for one in made) == 1
    assert module._active_context is None
