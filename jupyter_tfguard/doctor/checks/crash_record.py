"""Checks that a killed process leaves a readable recording."""

from __future__ import annotations

import os

from ...errors import TfGuardError
from ...places import data_folder, recordings_folder
from ...shield import PROBLEMS_FILE
from ...units import human_seconds
from ..check import CheckResult, Status
from ..environment import Environment
from ..probe import probe

NAME = "recording of a killed process"


def check(machine: Environment) -> CheckResult:
    """Kill a real process that records in a folder next to the kernels' recordings."""
    root = recordings_folder().with_name(f"doctor-{os.getpid()}")
    try:
        found = probe(root, machine.python)
    except (TfGuardError, OSError) as bad:
        return CheckResult(NAME, Status.UNKNOWN, str(bad))
    if found.missing:
        text = f"the recording of a process killed as a test lacks {', '.join(found.missing)}"
        return CheckResult(NAME, Status.PROBLEM, text, f"cat {data_folder() / PROBLEMS_FILE}")
    text = f"killed a test process and read back its samples, events and stderr tail in {human_seconds(found.seconds)}"
    return CheckResult(NAME, Status.OK, text)
