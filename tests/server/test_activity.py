"""What a kernel manager says of its kernel's doings: of Jupyter Server and of other kinds."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

import pytest
from jupyter_server.services.kernels.kernelmanager import ServerKernelManager

from jupyter_tfguard.server import tracked as module
from jupyter_tfguard.server.tracked import KernelActivity

pytestmark = pytest.mark.quick


@pytest.fixture(params=("of the server", "of another kind"))
def manager(request: pytest.FixtureRequest) -> object:
    if request.param == "of the server":
        return ServerKernelManager()
    return SimpleNamespace(execution_state="starting", last_activity=None)


def at(second: int) -> datetime.datetime:
    return datetime.datetime(2026, 11, 21, second=second, tzinfo=datetime.timezone.utc)


def test_every_change_is_seen(manager: object) -> None:
    activity = KernelActivity(manager)
    manager.execution_state = "busy"
    assert activity.is_busy()
    assert activity.runs_cell()
    manager.execution_state = "idle"
    assert not activity.is_busy()
    manager.execution_state = "dead"
    assert not activity.is_busy()
    activity.close()


def test_a_kernel_that_nobody_talked_to_does_not_stay_busy(
    manager: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.execution_state = "starting"
    activity = KernelActivity(manager)
    assert activity.is_busy()
    monkeypatch.setattr(module, "_START_SECONDS", 0.0)
    assert not activity.is_busy()


def test_a_manager_that_says_nothing_counts_as_busy() -> None:
    assert KernelActivity(object()).is_busy()
    assert KernelActivity(object()).heard_count() is None


@pytest.mark.parametrize("stamps_before", [0, 2])
def test_what_the_server_writes_when_it_starts_a_kernel_is_no_word_of_the_kernel(
    stamps_before: int,
) -> None:
    manager = ServerKernelManager()
    for stamp in range(stamps_before):
        manager.last_activity = at(stamp)
    activity = KernelActivity(manager)
    before = activity.heard_count() or 0
    for stamp in range(stamps_before, 2):
        manager.last_activity = at(stamp)
    assert activity.heard_count() == before
    manager._activity_stream = "listens"
    manager.last_activity = at(2)
    assert activity.heard_count() == before + 1


def test_a_run_is_a_busy_time_with_the_moments_between_its_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(
        module, "time", SimpleNamespace(time=lambda: clock.now, monotonic=lambda: clock.now)
    )
    manager = ServerKernelManager()
    activity = KernelActivity(manager)

    def says(state: str, second: float) -> float | None:
        clock.now = second
        manager.execution_state = state
        return activity.run_since()

    assert says("idle", 100.0) is None
    assert says("busy", 101.0) == 101.0
    manager.last_activity = at(1)
    assert says("idle", 150.0) == 101.0
    assert says("busy", 152.9) == 101.0
    assert says("idle", 160.0) == 101.0
    assert says("busy", 163.0) == 163.0


def test_a_restart_begins_another_run() -> None:
    manager = ServerKernelManager()
    activity = KernelActivity(manager)
    manager.execution_state = "busy"
    first = activity.run_since()
    manager.execution_state = "restarting"
    manager.execution_state = "busy"
    assert first is not None
    assert activity.run_since() > first


def test_when_a_run_began_that_was_not_seen_is_unknown() -> None:
    known = ServerKernelManager()
    known.execution_state = "busy"
    assert KernelActivity(known).run_since() is None
