"""The cell that ran at a death is named in the list and in the report, so that its notebook can carry a mark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_tfguard.diagnosis.diagnose import diagnose
from jupyter_tfguard.report.wire import to_entry_and_report
from tests.conftest import EXAMPLES, Example

pytestmark = pytest.mark.quick

WIRE = Path(__file__).parents[1] / "wire"
START = {"kind": "cell_start", "execution_count": 12, "cell_id": "b2f0c1d4", "head": "fit()"}
END = {"kind": "cell_end", "execution_count": 12}


def cell_of(*events: dict[str, Any]) -> Any:
    """The cell of a kernel that died with this journal."""
    bundle = Example("", "", EXAMPLES / "cgroup_oom" / "fires-v2-own-limit.json").bundle
    assert bundle["kernel"]["events"]
    bundle["kernel"]["events"] = [{"t": 1.0 + i, "n": i, **e} for i, e in enumerate(events)]
    entry, report = to_entry_and_report(bundle, diagnose(bundle))
    assert entry["cell"] == report["cell"]
    return entry["cell"]


def test_the_running_cell_is_named() -> None:
    assert cell_of(START) == {"cell_id": "b2f0c1d4", "execution_count": 12}


def test_a_cell_that_had_ended_is_not() -> None:
    assert cell_of(START, END) is None
    assert cell_of() is None


def test_what_a_kernel_cannot_mean_is_unknown() -> None:
    odd = START | {"cell_id": ["x"], "execution_count": "many"}
    assert cell_of(odd) == {"cell_id": None, "execution_count": None}
    assert cell_of(START | {"cell_id": "x" * 5000})["cell_id"] == "x" * 100


def test_the_front_end_is_tested_with_the_same_keys() -> None:
    samples = json.loads((WIRE / "crashes.json").read_text())["crashes"]
    assert all("cell" in sample for sample in samples)
    assert samples[0]["cell"].keys() == cell_of(START).keys()
    assert json.loads((WIRE / "report.json").read_text())["cell"] == samples[0]["cell"]
