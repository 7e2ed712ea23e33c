"""Orderly ends are told from each other, and from deaths."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence
from jupyter_tfguard.postmortem.capture import capture_orphan
from jupyter_tfguard.postmortem.detect import each_orphan
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from tests.kernel.rig import GuardedKernel

Make = Callable[..., GuardedKernel]
WATCHED = {"TFGUARD_WATCHER_PID": str(os.getpid())}


def requested(recorded: RecordingContents) -> list[tuple[str, bool | None]]:
    return [(e["how"], e["restart"]) for e in recorded.events if e["kind"] == "exit_requested"]


def test_quit_leaves_its_mark_for_the_watcher(new_kernel: Make) -> None:
    kernel = new_kernel(environment=WATCHED)
    assert kernel.die("quit()") == 0
    recorded = kernel.recording()
    assert recorded.end is not None
    assert recorded.end["reason"] == "quit"
    assert requested(recorded) == [("quit", None)]


def test_a_shutdown_that_was_asked_for_leaves_another(new_kernel: Make) -> None:
    kernel = new_kernel(environment=WATCHED)
    kernel.shutdown()
    recorded = kernel.recording()
    assert recorded.end is not None
    assert recorded.end["reason"] == "shutdown_request"
    assert requested(recorded) == [("shutdown_request", False)]


def test_a_restart_is_a_request_too(new_kernel: Make) -> None:
    kernel = new_kernel(environment=WATCHED)
    kernel.manager.restart_kernel()
    kernel.client.wait_for_ready(timeout=120)
    ends = []
    for path in kernel.recording_paths():
        recorded = read_recording(path)
        if recorded.end is not None:
            ends.append(requested(recorded))
    assert ends == [[("shutdown_request", True)]]


@pytest.mark.parametrize("environment", [{}, {"TFGUARD_WATCHER_PID": "999999999"}])
def test_without_a_running_watcher_a_shutdown_leaves_nothing(
    new_kernel: Make, environment: dict[str, str]
) -> None:
    kernel = new_kernel(environment=environment)
    kernel.shutdown()
    assert kernel.recording_paths() == []


LOOP_ENDS = "import asyncio\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(60)"


@pytest.mark.parametrize("environment", [{}, WATCHED])
def test_an_end_that_nobody_asked_for_is_kept_and_reported(
    new_kernel: Make, environment: dict[str, str]
) -> None:
    kernel = new_kernel(environment=environment)
    assert kernel.die(LOOP_ENDS) == 0
    (path,) = kernel.recording_paths()
    recorded = read_recording(path)
    assert recorded.end is not None
    assert recorded.end["reason"] == "unasked"
    if not environment:
        (orphan,) = each_orphan(path.parent)
        found = diagnose(capture_orphan(orphan)).best
        assert (found.cause, found.confidence) == ("sys_exit", Confidence.LIKELY)
        assert "event loop ended in cell [1]" in found.title


@pytest.mark.parametrize("seconds_ago", [0, 600])
def test_an_end_of_an_idle_kernel_is_kept_only_right_after_a_stop(
    new_kernel: Make, seconds_ago: int
) -> None:
    kernel = new_kernel()
    assert kernel.die(
        "import asyncio, time\nfrom jupyter_tfguard.kernel.current import current\n"
        "from jupyter_tfguard.record.events import event_of\n"
        f"current().stop.latest = event_of({{'kind': 'memory_stop', 't': time.time() - {seconds_ago}}})\n"
        "loop = asyncio.get_running_loop()\nloop.call_later(0.3, loop.stop)"
    ) in (0, 1)
    assert len(kernel.recording_paths()) == (0 if seconds_ago else 1)
