"""A fault that the GPU's driver reported counts for an end that it can explain, and for no other."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from tests.rigs.examples import bundle_of

pytestmark = pytest.mark.quick

FELL_OFF = (
    "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)


def with_fault(path: str, line: str) -> dict[str, Any]:
    bundle = bundle_of(path)
    died = bundle["identity"]["died"]
    bundle["system_log"] = {"readable": True, "lines": [{"time": died - 1.0, "text": line}]}
    return bundle


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
