"""A kernel that could not start another thread: how many it had, and which limit that was."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.finding import Finding
from jupyter_tfguard.diagnosis.pasted import Pasted
from jupyter_tfguard.kernel.header import kernel_header
from jupyter_tfguard.postmortem.capture import capture
from jupyter_tfguard.record.contents import RecordingContents
from jupyter_tfguard.record.facts import ServerFacts
from jupyter_tfguard.record.identity import ProcessIdentity
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick


def judged(**limits: Any) -> Finding:
    bundle = bundle_of("thread_limit/fires-openblas.json")
    columns, count = ["time", "process.thread_count"], limits.pop("threads", None)
    rows = [[bundle["identity"]["died"] - n, count] for n in (2, 1)] if count else []
    bundle["kernel"]["samples"] = {"columns": columns, "rows": rows}
    bundle["kernel"]["stderr_tail"] += limits.pop("lines", [])
    bundle["thread_limits"] = limits or None
    return diagnose(bundle).best


def advice(found: Finding) -> str:
    return found.advice[0].text


def test_it_says_how_many_threads_and_which_limits() -> None:
    found = judged(threads=812, group_count=1024, user_count=63_000)
    assert (
        found.title == "The kernel could not start another thread and aborted. It had 812 threads."
    )
    assert "The container or service allows 1,024 threads in all its processes." in advice(found)
    assert "`ulimit -u` allows this user 63,000." in advice(found)


def test_what_is_not_known_is_left_out() -> None:
    assert judged().title == "The kernel could not start another thread and aborted."
    assert "allows" not in advice(judged(threads=812))
    assert "service allows" not in advice(judged(user_count=4096))


def test_the_limit_in_the_message_of_openblas_is_shown() -> None:
    line = "OpenBLAS blas_thread_init: RLIMIT_NPROC 4096 current, 8192 max"
    assert "`ulimit -u` allows this user 4,096." in advice(judged(lines=[line]))
    first = "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 8: Resource temporarily unavailable"
    assert "4,096" in advice(explain(Pasted(f"{first}\n{line}\n")).best)


def test_forged_limits_are_left_out() -> None:
    assert "allows" not in advice(judged(group_count="many", user_count=[1], threads=-3))


def test_a_bundle_of_a_watched_kernel_has_the_limits() -> None:
    bundle = capture(identity=ProcessIdentity(4711, 1), server=ServerFacts(exit=None, died=1.0))
    limits = bundle["thread_limits"]
    assert set(limits) == {"group_count", "user_count"}
    assert all(count is None or count > 0 for count in limits.values())
    assert capture(identity=ProcessIdentity(4711, 1))["thread_limits"] is None


def test_the_limits_of_a_kernel_in_a_group_of_its_own_are_its_own() -> None:
    own = {"group_count": 180, "user_count": None}
    parts: dict[str, Any] = {name: [] for name in ("events", "samples", "seconds", "minutes")}
    contents = RecordingContents(
        Path(),
        {"thread_limits": own},
        **parts,
        progress=None,
        stderr_tail="",
        fault_text="",
        signal_texts={},
        end=None,
    )
    facts = ServerFacts(exit=None, died=1.0)
    bundle = capture(identity=ProcessIdentity(4711, 1), recording=contents, server=facts)
    assert bundle["thread_limits"] == own
    assert set(kernel_header(SimpleNamespace(kernel=SimpleNamespace()))["thread_limits"]) == set(
        own
    )
