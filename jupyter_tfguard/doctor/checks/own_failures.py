"""What the guard itself could not do lately."""

from __future__ import annotations

import datetime

from ...shield import read_problems
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "failures of the guard itself"


def check(machine: Environment) -> CheckResult:
    """The newest failure that was written down in the last seven days."""
    problems = read_problems()
    if not problems:
        return CheckResult(NAME, Status.OK, "none in the last seven days")
    newest = problems[-1]
    when = datetime.datetime.fromtimestamp(float(newest["time"])).strftime("%Y-%m-%d %H:%M")
    more = f" ({len(problems)} in all)" if len(problems) > 1 else ""
    text = f"{when}, {newest.get('place')}: {newest.get('what')}{more}"
    return CheckResult(NAME, Status.WARNING, text, newest.get("fix"))
