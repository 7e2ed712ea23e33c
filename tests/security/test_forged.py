"""A part of `tests/rigs/forged.py`: recordings that a notebook made up make no wrong certainty, no crash, and touch nothing."""

from __future__ import annotations

import sys

import pytest

from tests.rigs.forged import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes, and /proc to tell the dead")


def test_forged_recordings_are_reported_for_what_they_are(data_folder: object) -> None:
    told = run(30, seed=1)
    assert told.crashes == []
    assert told.wrong_certain == []
    assert told.touched == []
    assert told.shown == []
    assert told.reports > 30  # two of each, some are refused for their format
    assert told.grown_bytes < 64 << 20
