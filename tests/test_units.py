"""Numbers and times as text; the front end reads the same samples."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from jupyter_tfguard.units import human_bytes, human_count, local_time

pytestmark = pytest.mark.quick

SAMPLES = json.loads((Path(__file__).parent / "wire" / "numbers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("number", "text"), SAMPLES["bytes"])
def test_bytes(number: int | None, text: str) -> None:
    assert human_bytes(number) == text


@pytest.mark.parametrize(("number", "text"), SAMPLES["counts"])
def test_counts(number: int, text: str) -> None:
    assert human_count(number) == text


def test_times_name_their_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XYZ-3")
    time.tzset()
    try:
        assert local_time("2026-11-21T02:14:07.123Z") == "2026-11-21 05:14:07 XYZ"
        assert local_time(1795227247.5) == "2026-11-21 05:14:07 XYZ"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert local_time("not a time") == "not a time"
    assert local_time(1e300) == "1e+300"
