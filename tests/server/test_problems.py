"""What does not work, as the panel tells it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from jupyter_tfguard.server.problems import problems
from jupyter_tfguard.shield import PROBLEMS_FILE, read_problems

pytestmark = pytest.mark.quick


def test_what_several_processes_met_is_reported_once_newest_first() -> None:
    noted = [
        {"time": float(number), "pid": number, "place": place, "what": "No space left", "fix": ""}
        for number, place in enumerate(["recording", "report", "recording"])
    ]
    found = problems(noted, active=True)
    assert [(problem["what"], problem["noted_at"]) for problem in found] == [
        ("Recording: No space left", 2.0),
        ("Report: No space left", 1.0),
    ]


def test_times_that_cannot_be_are_passed_over(data_folder: Path) -> None:
    now = time.time()
    times = [
        "Infinity",
        "NaN",
        str(now + 10 * 86400),
        '"soon"',
        "null",
        "1" * 400,
        f'"{now}"',
        str(now),
    ]
    lines = [f'{{"time": {when}, "place": "p", "what": "{n}"}}' for n, when in enumerate(times)]
    data_folder.mkdir(mode=0o700)
    (data_folder / PROBLEMS_FILE).write_text("\n".join(lines))
    told = problems(read_problems(), active=True)
    assert [problem["what"] for problem in told] == ["P: 7", "P: 6"]
    assert json.loads(json.dumps(told, allow_nan=False))[0]["noted_at"] == now
