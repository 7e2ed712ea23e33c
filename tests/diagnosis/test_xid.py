"""A fault that the GPU's driver reported counts for an end that it can explain, and for no other."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.diagnosis.finding import Confidence
from tests.conftest import EXAMPLES, Example

pytestmark = pytest.mark.quick

FELL_OFF = (
    "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)


def with_fault(path: str, line: str) -> dict[str, Any]:
    bundle = Example("", "", EXAMPLES / path).bundle
    died = bundle["identity"]["died"]
    bundle["system_log"] = {"readable": True, "lines": [{"time": died - 1.0, "text": line}]}
    return bundle


def test_a_card_that_fell_off_explains_a_crash_and_is_never_certain() -> None:
    best = diagnose(with_fault("segfault_native/fires-with-python-stack.json", FELL_OFF)).best
    assert best.cause == "gpu_hardware_xid"
    assert best.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "path",
    [
        "sigkill_unattributed/fires-plain-kill-9.json",
        "child_oom_killed/fires-log-names-child.json",
        "child_oom_killed/fires-counter-and-vanished-child.json",
    ],
)
def test_it_explains_neither_a_kill_nor_the_end_of_a_child(path: str) -> None:
    causes = [finding.cause for finding in diagnose(with_fault(path, FELL_OFF)).findings]
    assert "gpu_hardware_xid" not in causes


def test_a_fault_of_another_process_does_not_count() -> None:
    line = "NVRM: Xid (PCI:0000:41:00): 31, pid=999999, name=python, Ch 00000008, MMU Fault"
    best = diagnose(with_fault("segfault_native/fires-with-python-stack.json", line)).best
    assert best.cause == "segfault_native"
