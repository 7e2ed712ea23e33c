"""A rise is told of the cell that it happened in, not of one that came after the process's highest point."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_tfguard.diagnosis.evidence import Evidence
from jupyter_tfguard.diagnosis.memory import growth_fact
from tests.conftest import EXAMPLES, Example

pytestmark = pytest.mark.quick

GIB = 1024**3


def bundle() -> dict[str, Any]:
    """A kernel that held at most 3.93 GiB; its last cell began with 0.4 GiB, the fit in it with 1.6 GiB."""
    return Example("", "", EXAMPLES / "cgroup_oom/fires-v2-own-limit.json").bundle


def told(found: dict[str, Any]) -> str | None:
    fact = growth_fact(Evidence(found))
    return None if fact is None else fact.text


@pytest.mark.parametrize("peak_bytes", [None, 0, 2 * GIB, "much"])
def test_a_peak_that_rose_in_the_cell_is_its_own(peak_bytes: object) -> None:
    found = bundle()
    found["kernel"]["events"][0]["peak_bytes"] = peak_bytes
    assert told(found) == "It grew by 2.33 GiB since the fit began (from 1.60 GiB)"


def test_of_a_peak_before_the_cell_only_the_samples_in_it_count() -> None:
    found = bundle()
    found["server"]["peak_bytes"] = 9 * GIB
    assert told(found) == "It grew by 7.40 GiB since the fit began (from 1.60 GiB)"
    # It was there when the cell began.
    found["kernel"]["events"][0]["peak_bytes"] = 9 * GIB
    assert told(found) == "It grew by 2.33 GiB since the fit began (from 1.60 GiB)"
    rows = found["server"]["rows"]
    rows[0][1] = 8 * GIB  # sampled before the cell began
    assert told(found) == "It grew by 2.33 GiB since the fit began (from 1.60 GiB)"
    found["server"]["rows"] = rows[:1]
    assert told(found) is None
