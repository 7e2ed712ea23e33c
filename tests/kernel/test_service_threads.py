"""Threads of the kernel's machinery are told from those that the user's code runs in."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from ipykernel.parentpoller import ParentPollerUnix
from IPython.lib import backgroundjobs

from jupyter_tfguard.kernel.capture.stacks import service_threads
from tests.rigs.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.quick


@pytest.fixture
def done() -> Iterator[threading.Event]:
    """Set when the test ends, for threads to wait for."""
    event = threading.Event()
    yield event
    event.set()


def test_threads_of_the_machinery_are_services_and_the_users_are_not(
    done: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A job asks its shell how to print a traceback.
    shell = SimpleNamespace(InteractiveTB=SimpleNamespace(text=None))
    monkeypatch.setattr(backgroundjobs, "get_ipython", lambda: shell, raising=False)
    poller = ParentPollerUnix()  # waits until this process's parent ends, as a daemon
    ours = threading.Thread(target=done.wait, name="tfguard-x", daemon=True)
    users = threading.Thread(target=done.wait, daemon=True)
    job = backgroundjobs.BackgroundJobFunc(done.wait)
    for thread in (poller, ours, users, job):
        thread.start()
    found = service_threads()
    assert {poller.native_id, ours.native_id} <= found
    assert not {users.native_id, job.native_id} & found
    done.set()
    job.join(DEADLINE_SECONDS)
