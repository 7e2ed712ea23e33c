"""What does not work, as the panel tells it."""

from __future__ import annotations

import pytest

from jupyter_tfguard.server.problems import problems

pytestmark = pytest.mark.quick


def test_what_several_processes_met_is_told_once_newest_first() -> None:
    noted = [
        {"time": float(number), "pid": number, "place": place, "what": "No space left", "fix": ""}
        for number, place in enumerate(["recording", "report", "recording"])
    ]
    found = problems(noted, active=True, slow=None)
    assert [problem["what"] for problem in found] == [
        "recording: No space left",
        "report: No space left",
    ]
    assert problems(noted, active=True, slow="Slow.")[0]["what"] == "Slow."
