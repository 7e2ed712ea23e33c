"""Threads of the kernel's machinery are told from those that the user's code runs in."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import zmq
from ipykernel.parentpoller import ParentPollerUnix
from IPython.lib import backgroundjobs

from jupyter_tfguard.kernel.stacks import message_carriers, service_threads

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
    job.join(10)


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not name its threads")
def test_threads_that_carry_messages_are_those_from_before_the_control_thread(
    done: threading.Event,
) -> None:
    before = message_carriers()
    kernels = zmq.Context()
    kernels.socket(zmq.PUB).close()
    done.wait(0.2)  # they give themselves their names
    known = message_carriers()
    assert len(known - before) >= 2  # no control thread yet: all that there are
    control = threading.Thread(target=done.wait, name="Control", daemon=True)
    # Moments are told apart by ticks of 10 ms.
    done.wait(3 / os.sysconf("SC_CLK_TCK"))
    control.start()
    done.wait(3 / os.sysconf("SC_CLK_TCK"))
    users = zmq.Context()
    users.socket(zmq.PUB).close()
    done.wait(0.2)
    assert message_carriers() == known
    users.term()
    kernels.term()
