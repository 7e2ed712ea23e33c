"""Runs a guide for a test."""

from __future__ import annotations

import re

from notebooks.run_guides import GUIDES, GuideRun, run_guide
from tests.crash.conftest import no_cgroup
from tests.crash.scene import CannotBePlayed
from tests.crash.settings import MIB, memory_limit

_UNITS_MIB = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}


def run_named(name: str) -> GuideRun:
    """The guide of this file name, run; skipped where no memory limit can be set."""
    try:
        with memory_limit(100 * MIB):
            pass
    except CannotBePlayed as no:
        no_cgroup(str(no))
    return run_guide(GUIDES / f"{name}.ipynb")


def printed_mib(line: str) -> float:
    """The first size in a line, in MiB. In a row of ``%tfguard cells`` that is the cell's peak of host memory."""
    found = re.search(r"([\d.]+) (KiB|MiB|GiB)", line)
    assert found, line
    return float(found[1]) * _UNITS_MIB[found[2]]
