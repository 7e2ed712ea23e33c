"""``jupyter tfguard doctor``: check the installation."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..doctor.check import exit_code, run_checks, to_json
from ..doctor.environment import Environment
from ..doctor.text import text


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("doctor", help="check the installation, TensorFlow and the GPU")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print every check. Exit code 0: ok or warnings only, 1: a problem, 2: could not check."""
    results = run_checks(Environment.here())
    if chosen.json:
        print(json.dumps(to_json(results), indent=2))
    else:
        print(text(results))
    return exit_code(results)
