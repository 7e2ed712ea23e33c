"""Whose death an OOM kill was: the kernel's, its server's too, or only a neighbour's."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence, Finding, Source
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick


def best_of(path: str) -> Finding:
    return diagnose(bundle_of(path)).best


def counted() -> dict[str, Any]:
    """A kernel killed in its full group; nobody can read who the victim was, and no process is missed."""
    bundle = bundle_of("cgroup_oom/fires-v2-own-limit.json")
    bundle["system_log"] = {"readable": False, "reason": "permission denied", "lines": []}
    assert diagnose(bundle).best.confidence is Confidence.CERTAIN
    return bundle


def test_a_small_kernel_is_not_certain_to_have_been_the_victim() -> None:
    """A child that comes, grows and is killed between two looks leaves the same counters."""
    bundle = counted()
    server = bundle["server"]
    column = server["columns"].index("process.rss_bytes")
    for row in server["rows"]:
        row[column] = 200 << 20
    server["peak_bytes"] = 210 << 20
    best = diagnose(bundle).best
    assert best.confidence is Confidence.LIKELY
    assert "short-lived process" in best.against[0].text


def test_a_kill_that_may_be_minutes_older_than_the_death_makes_nothing_certain() -> None:
    bundle = counted()
    bundle["server"]["before"]["time"] = bundle["identity"]["died"] - 300
    assert diagnose(bundle).best.confidence is Confidence.LIKELY


@pytest.mark.parametrize("cause", ["cgroup_oom", "host_oom"])
def test_a_readable_log_that_names_only_a_neighbour_clears_the_oom_killer(cause: str) -> None:
    best = best_of(f"{cause}/quiet-neighbour-in-the-group-killed-in-the-same-second.json")
    assert best.cause == "sigkill_unattributed"
    assert best.confidence is Confidence.LIKELY
    (log,) = [fact.text for fact in best.because if fact.source is Source.SYSTEM_LOG]
    assert log == "The log shows no kill of this process, but one of process 9999"


def test_a_server_that_was_killed_with_its_kernel_is_in_the_evidence() -> None:
    best = best_of("cgroup_oom/fires-server-killed-with-it.json")
    assert best.confidence is Confidence.LIKELY
    texts = [fact.text for fact in best.because]
    assert "Its Jupyter server (process 4700) was also killed" in texts
    # One victim is counted twice there, so the number is not that of the dead.
    assert any(
        text.startswith("Its memory cgroup counted OOM kills (increase of 3)") for text in texts
    )
    assert "GiB" in best.title
