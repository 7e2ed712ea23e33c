"""What speaks against a finding is told with it, and takes away what certainty it takes away."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose, explain
from jupyter_tfguard.diagnosis.exit_status import exit_status
from jupyter_tfguard.diagnosis.finding import Confidence, Finding
from jupyter_tfguard.diagnosis.pasted import Pasted
from tests.rigs.examples import EXAMPLES, TextExample, bundle_of

pytestmark = pytest.mark.quick

HEAP = "glibc_abort_heap_corruption/fires-old-glibc.txt"


def pasted(path: str, **status: Any) -> Finding:
    text = TextExample("", "", EXAMPLES / path).pasted
    return explain(Pasted(text.text, text.kernel_log, exit_status(**status))).best


def against(found: Finding) -> str:
    return " ".join(fact.text for fact in found.against)


def test_an_exit_code_of_0_speaks_against_a_fatal_line() -> None:
    assert pasted(HEAP).confidence is Confidence.CERTAIN
    doubted = pasted(HEAP, code=0)
    assert doubted.cause == "glibc_abort_heap_corruption"
    assert doubted.confidence is Confidence.LIKELY
    assert "exit code 0" in against(doubted)


def test_a_signal_that_the_cause_does_not_send_speaks_against_it() -> None:
    assert not pasted(HEAP, code=134).against
    doubted = pasted(HEAP, signal="KILL")
    assert doubted.confidence is Confidence.LIKELY
    assert "SIGABRT or SIGSEGV" in against(doubted)


def test_use_far_below_the_limit_speaks_against_the_limit() -> None:
    best = diagnose(bundle_of("host_leak/quiet-too-few-epochs.json")).best
    assert best.cause == "cgroup_oom"
    assert "never seen near the limit" in against(best)


def test_a_quit_that_ended_with_another_exit_code_says_so() -> None:
    bundle = bundle_of("sys_exit/fires-quit-names-its-cell.json")
    assert not diagnose(bundle).best.against
    bundle["server"]["exit"]["code"] = 1
    best = diagnose(bundle).best
    assert best.confidence is Confidence.LIKELY
    assert "The exit code was 1, but quit() exits with 0" in against(best)


def test_an_exit_code_of_a_kernel_without_a_recording_may_be_a_crash_that_it_caught() -> None:
    bundle = bundle_of("sys_exit/fires-exit-3.json")
    assert diagnose(bundle).best.confidence is Confidence.CERTAIN
    bundle["kernel"] = None
    best = diagnose(bundle).best
    assert (best.cause, best.confidence) == ("sys_exit", Confidence.POSSIBLE)
    assert "catch their own crash" in against(best)
