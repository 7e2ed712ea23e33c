"""What the shield keeps from the user, and what it must not: his own exception, raised by his signal handler."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard import shield as shield_module
from jupyter_tfguard.shield import noted_in_this_process, shield, shielded

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals"),
]


class OutOfTime(Exception):
    """The user's own."""


def raises(number: int, frame: Any) -> None:
    deeper()


def deeper() -> None:
    raise OutOfTime


class Handlers:
    def method(self, *args: Any) -> None:
        raise OutOfTime


@pytest.fixture(autouse=True)
def handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TFGUARD_DIR", str(tmp_path))
    monkeypatch.setattr(shield_module, "_noted", {})
    before = signal.signal(signal.SIGALRM, raises)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def ours() -> None:
    """Ours, while the user's signal comes."""
    signal.raise_signal(signal.SIGALRM)


@pytest.mark.parametrize(
    "kind",
    [raises, Handlers().method],
    ids=["function", "method"],
)
def test_what_a_users_handler_raises_reaches_the_user(kind: Callable[..., None]) -> None:
    signal.signal(signal.SIGALRM, kind)
    with pytest.raises(OutOfTime):
        shield("x")(ours)()
    with pytest.raises(OutOfTime), shielded("x"):
        ours()
    assert noted_in_this_process() == []


def test_it_passes_through_a_shield_within_a_shield() -> None:
    with pytest.raises(OutOfTime), shielded("outer"):
        shield("inner")(ours)()
    assert noted_in_this_process() == []


def test_a_failure_of_ours_is_kept_though_there_is_a_handler() -> None:
    with shielded("x"):
        deeper()
    assert shield("y")(lambda: 1 / 0)() is None  # type: ignore[func-returns-value]
    assert noted_in_this_process() == ["x: OutOfTime: ", "y: ZeroDivisionError: division by zero"]


def test_a_handler_that_catches_its_own_error_is_no_cause_of_ours() -> None:
    def quiet(number: int, frame: Any) -> None:
        with pytest.raises(OutOfTime):
            deeper()

    signal.signal(signal.SIGALRM, quiet)
    with shielded("x"):
        ours()
        raise KeyError("ours")
    assert noted_in_this_process() == ["x: KeyError: 'ours'"]
