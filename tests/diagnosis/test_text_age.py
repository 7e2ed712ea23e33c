"""Native text that the kernel lived on after says nothing about its end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.python_stacks import without_fault_text
from jupyter_tfguard.diagnosis.verdict import record_is_old
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.rigs.examples import EXAMPLES, Example

pytestmark = pytest.mark.quick

DIED = 1790000000.0
FATAL = "F tensorflow/core/a.cc:7] Check failed: n > 0"


def aborted(**kernel: Any) -> dict[str, Any]:
    path = EXAMPLES / "glibc_abort_heap_corruption/fires-invalid-pointer.json"
    bundle = Example("", "", path).bundle
    bundle["kernel"] |= kernel
    return bundle


def test_text_from_just_before_the_end_counts() -> None:
    bundle = aborted(stderr_time=DIED - 0.1, fault_time=DIED)
    assert diagnose(bundle).best.cause == "glibc_abort_heap_corruption"


def test_text_of_unknown_age_counts() -> None:
    assert diagnose(aborted()).best.cause == "glibc_abort_heap_corruption"


def test_text_that_was_written_before_the_last_cell_began_does_not_count() -> None:
    bundle = aborted(stderr_time=DIED - 2)
    bundle["kernel"]["events"] += [{"kind": "cell_start", "t": DIED - 1.5, "n": 99}]
    assert diagnose(bundle).best.cause == "unknown"


def test_text_from_long_before_the_fatal_signal_does_not_count() -> None:
    lines = ["Fatal Python error: Aborted", "", "Stack (most recent call first):"]
    bundle = aborted(stderr_time=DIED - 9, fault_text=lines, fault_time=DIED - 1)
    assert diagnose(bundle).best.cause == "unknown"


def test_a_core_file_may_be_written_for_long_after_the_text() -> None:
    bundle = aborted(stderr_time=DIED - 40, events=[])
    assert diagnose(bundle).best.cause == "glibc_abort_heap_corruption"
    assert diagnose(bundle | aborted(stderr_time=DIED - 90, events=[])).best.cause == "unknown"


@pytest.mark.parametrize("zone_hours", [0, -7, 5.75, 14])
def test_a_record_of_now_is_not_old_in_any_zone(zone_hours: float) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(DIED - 1 + zone_hours * 3600))
    assert not record_is_old(f"{stamp}.123456: {FATAL}", DIED)


@pytest.mark.parametrize("seconds", [400, 86400 * 400])
def test_a_record_of_another_time_is_old(seconds: float) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(DIED - seconds))
    assert record_is_old(f"{stamp}.123456: {FATAL}", DIED)
    assert record_is_old(f"F0000 00:00:{DIED - seconds:.6f}    4711 a.cc:7] Check failed", DIED)


@pytest.mark.parametrize("text", [FATAL, "2026-99-99 99:99:99.1: F a", "", "F0000 00:00:1: x"])
def test_a_record_without_a_time_is_not_called_old(text: str) -> None:
    assert not record_is_old(text, DIED)
    assert not record_is_old(text, 0.0)


# faulthandler's text in the stderr tail: the user has set PYTHONFAULTHANDLER=1.
FAULT = [
    "Fatal Python error: Aborted",
    "",
    *(
        line
        for number in range(40)
        for line in (
            f"Thread 0x{number:016x} (most recent call first):",
            *[f'  File "/opt/env/lib/python3.11/threading.py", line {n} in wait' for n in range(9)],
            "",
        )
    ),
    "Current thread 0x00007f1d5c7ff700 (most recent call first):",
    '  File "/tmp/ipykernel_4711/2093841.py", line 4 in load',
    "",
    "Extension modules: numpy.core._multiarray_umath (total: 1)",
]


@pytest.mark.parametrize(("age_seconds", "cause"), [(0.5, "tf_check_failed"), (3700.0, "unknown")])
def test_stacks_of_a_user_who_enabled_faulthandler_hide_no_line_and_make_no_old_one_new(
    age_seconds: float, cause: str
) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(DIED - age_seconds))
    tail = ["loading", f"{stamp}.123456: {FATAL}", *FAULT]
    bundle = aborted(stderr_tail=tail, fault_text=[], stderr_time=DIED - 0.1)
    entry, report = to_entry_and_report(bundle | {"earlier_deaths": []}, diagnose(bundle))
    assert entry["cause"] == cause
    assert report["stderr_tail"] == tail[:2]
    assert '  File "/tmp/ipykernel_4711/2093841.py", line 4 in load' in report["python_stack"]


def test_only_the_stacks_are_taken_out_of_the_stderr_tail() -> None:
    fatal = ["Fatal Python error: _Py_CheckRecursiveCall: Cannot recover from stack overflow."]
    for lines in (["a", "b"], ["  File x", "Thread started"], fatal, []):
        assert without_fault_text(lines) == lines
    assert without_fault_text(["a", *FAULT, "after"]) == ["a", "after"]
