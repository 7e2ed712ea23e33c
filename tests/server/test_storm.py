"""Deaths by the hundred, through watcher, reporter and store; `tests/rigs/crash_storm.py` does the same by the thousand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.rigs.crash_storm import loop, storm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a pidfd for every stub")


def test_of_many_deaths_in_one_second_each_has_its_event_and_is_counted(data_folder: Path) -> None:
    found = storm(data_folder, 300)
    assert found["killed_within_seconds"] < 1
    assert (found["events"], found["event_kernels"], found["counted"]) == (300, 300, 300)
    assert (found["bundles"], found["groups"], found["grouped_kernels"]) == (50, 1, 250)
    assert found["oldest_kept"] >= found["newest_counted"]  # the newest have the reports
    assert found["recordings_left"] == 0


def test_a_crash_loop_is_counted_exactly_across_a_restart_of_the_server(data_folder: Path) -> None:
    found = loop(data_folder, 40)
    assert (found["events"], found["bundles"], found["grouped"]) == (40, 5, 35)
    assert (found["groups"], found["grouped_kernels"]) == (1, 1)
    assert found["causes"] == ["sigkill_unattributed"]
    assert found["recordings_left"] == 0
