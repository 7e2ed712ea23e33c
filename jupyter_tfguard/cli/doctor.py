"""``jupyter tfguard doctor``: is everything in place."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from ..doctor.check import Status, exit_code, run_checks

_MARKS = {Status.OK: "✓", Status.WARNING: "▲", Status.PROBLEM: "✕", Status.UNKNOWN: "?"}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("doctor", help="is everything in place")
    parser.add_argument("--json", action="store_true", help="the checks as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print every check. Exit code 0: ok or warnings only, 1: a problem, 2: could not check."""
    results = run_checks()
    if chosen.json:
        print(json.dumps([{**vars(r), "status": r.status.value} for r in results], indent=2))
        return exit_code(results)
    for result in results:
        status = "" if result.status is Status.OK else f"{result.status.value}: "
        lines = textwrap.wrap(f"{result.name}: {status}{result.text}", 98, subsequent_indent="  ")
        print(f"{_MARKS[result.status]} " + "\n".join(lines))
        if result.fix:
            print(f"    fix: {result.fix}")
    counts = [r.status for r in results]
    print(
        f"\n{counts.count(Status.OK)} ok, {counts.count(Status.WARNING)} warnings, {counts.count(Status.PROBLEM)} problems"
    )
    return exit_code(results)
