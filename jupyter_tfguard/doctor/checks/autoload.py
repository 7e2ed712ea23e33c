"""Does the guard load itself into every kernel of this environment."""

from __future__ import annotations

from ...collectors.packages import find_package
from ...kernelspecs.command import STARTUP_FILE
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "guard loaded into kernels"


def check(machine: Environment) -> CheckResult:
    """Whether the startup file is there."""
    if find_package("jupyter-tfguard", machine.import_folders) is None:
        text = f"{machine.prefix} has no tfguard: its kernels load this one by `jupyter tfguard enable`"
        return CheckResult(NAME, Status.OK, text)
    path = machine.prefix / STARTUP_FILE
    if not path.is_file():
        text = (
            f"{path} is missing, so kernels of {machine.prefix} start without the guard. "
            "`%load_ext tfguard` in a notebook loads it for one kernel."
        )
        fix = machine.pip("install", "--force-reinstall", "--no-deps", "jupyter-tfguard")
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    return CheckResult(NAME, Status.OK, f"kernels of {machine.prefix} load it at their start")
