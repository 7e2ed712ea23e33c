"""Runs a guide for a test."""

from __future__ import annotations

from notebooks.run_guides import GUIDES, GuideRun, run_guide
from tests.crash.conftest import no_cgroup
from tests.crash.scene import CannotBePlayed
from tests.crash.settings import MIB, memory_limit


def run_named(name: str) -> GuideRun:
    """The guide of this file name, run; skipped where no memory limit can be set."""
    try:
        with memory_limit(100 * MIB):
            pass
    except CannotBePlayed as no:
        no_cgroup(str(no))
    return run_guide(GUIDES / f"{name}.ipynb")
