"""What every panel shows of a kernel's memory: only what is known, and each metric by its line in the table."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from jupyter_tfguard.metrics import Sample
from jupyter_tfguard.report import live
from jupyter_tfguard.watch.live.live import Live

pytestmark = pytest.mark.quick

SAMPLES = Path(__file__).parents[1] / "wire"
NAMES = ("status", "widget")
MIB = 2**20


def details(**values: float) -> list[str]:
    given = {f"process.{name}": value for name, value in values.items()}
    found: list[str] = live.host(Sample(1, time.monotonic(), 1.0, given), None)["details"]
    return found


def test_unknown_is_left_out_and_zero_where_it_says_nothing() -> None:
    assert details() == []
    assert details(rss_bytes=0, children_rss_bytes=0, swap_bytes=0) == ["resident 0 B"]
    assert details(rss_bytes=500 * MIB, peak_bytes=600 * MIB, swap_bytes=3 * MIB) == [
        "resident 500 MiB",
        "peak 600 MiB",
        "swapped out 3 MiB",
    ]


def test_one_line_shows_a_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = live.Detail("threads", "process.thread_count", "{:.0f}".format)
    monkeypatch.setattr(live, "DETAILS", (*live.DETAILS, threads))
    assert details(thread_count=44.0) == ["threads 44"]


def test_server_and_widget_show_the_same() -> None:
    found = live.kernel(Live(), None, None)
    status, widget = (json.loads((SAMPLES / f"{name}.json").read_text()) for name in NAMES)
    for shown in (status["kernels"][0], widget["state"]):
        assert set(found) <= set(shown)
        assert set(found["host"]) == set(shown["host"])
        assert set(live.guard()) == set(shown["guard"])
        assert shown["guard"]["stop"] is None or set(shown["guard"]["stop"]) == {
            "state",
            "stop_bytes",
            "notes",
        }


@pytest.mark.parametrize("claimed", [None, [], "on", {"problems": 3, "growth": [], "stop": {}}])
def test_what_is_no_guard_state_is_unknown(claimed: object) -> None:
    found = live.guard(claimed)
    assert (found["problems"], found["growth"], found["stop"]) == ([], None, None)
