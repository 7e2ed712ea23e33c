"""Deaths by the hundred, through watcher, reporter and store; `tests/rigs/crash_storm.py` does the same by the thousand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.rigs.crash_storm import loop, storm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a pidfd for every stub")


def test_of_many_deaths_in_one_second_each_has_its_event(data_folder: Path) -> None:
    found = storm(data_folder, 120)
    assert (found["events"], found["event_kernels"]) == (120, 120)
    assert (found["bundles"], found["entries"]) == (50, 50)
    assert found["recordings_left"] == 0


def test_a_crash_loop_is_one_entry_across_a_restart_of_the_server(data_folder: Path) -> None:
    found = loop(data_folder, 20)
    assert (found["events"], found["bundles"], found["entries"]) == (20, 20, 1)
    assert found["causes"] == ["sigkill_unattributed"]
    assert found["recordings_left"] == 0
