"""Does a killed process leave a record that can be read: the one promise that everything rests on."""

from __future__ import annotations

import os

from ...errors import TfGuardError
from ...places import data_folder, recordings_folder
from ...shield import PROBLEMS_FILE
from ...units import human_seconds
from ..check import CheckResult, Status
from ..environment import Environment
from ..probe import probe

NAME = "record of a killed process"


def check(machine: Environment) -> CheckResult:
    """Really kills one that records where kernels do, beside their recordings."""
    root = recordings_folder().with_name(f"doctor-{os.getpid()}")
    try:
        found = probe(root, machine.python)
    except (TfGuardError, OSError) as bad:
        return CheckResult(NAME, Status.UNKNOWN, str(bad))
    if found.missing:
        text = f"of a process killed just now the record lacks {', '.join(found.missing)}"
        return CheckResult(NAME, Status.PROBLEM, text, f"cat {data_folder() / PROBLEMS_FILE}")
    text = f"a process was killed, and its samples, events and last native words read back, in {human_seconds(found.seconds)}"
    return CheckResult(NAME, Status.OK, text)
