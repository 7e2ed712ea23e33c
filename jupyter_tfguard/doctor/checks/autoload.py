"""Does the guard load itself into every kernel of this environment, and does anything keep it from that."""

from __future__ import annotations

import shlex

from ...collectors.packages import find_package
from ...kernelspecs.interpreter import STARTUP_FILE
from ..check import CheckResult, Status
from ..environment import Environment
from ..startup_files import files_before, syntax_error

NAME = "guard loaded into kernels"


def check(machine: Environment) -> list[CheckResult]:
    """The startup file, and those that IPython runs before it; none of them is run here."""
    if find_package("jupyter-tfguard", machine.import_folders) is None:
        text = f"{machine.prefix} has no tfguard: its kernels load this one by `jupyter tfguard enable`"
        return [CheckResult(NAME, Status.OK, text)]
    path = machine.prefix / STARTUP_FILE
    if not path.is_file():
        text = (
            f"{path} is missing, so kernels of {machine.prefix} start without the guard. "
            "`%load_ext tfguard` in a notebook loads it for one kernel."
        )
        fix = machine.pip("install", "--force-reinstall", "--no-deps", "jupyter-tfguard")
        return [CheckResult(NAME, Status.PROBLEM, text, fix)]
    earlier = files_before(machine, path, machine.environ)
    broken = []
    for file in earlier:
        why = syntax_error(file)
        if why is not None:
            text = f"{file} runs before the guard and fails ({why}), so IPython never comes to the guard"
            fix = f"mv {shlex.quote(str(file))} {shlex.quote(str(file))}.off"
            broken.append(CheckResult(NAME, Status.PROBLEM, text, fix))
    if broken:
        return broken
    text = f"kernels of {machine.prefix} load it at their start"
    if earlier:
        names = ", ".join(map(str, earlier))
        text += f", after {names}; should one of these raise, it is not loaded"
    return [CheckResult(NAME, Status.OK, text)]
