"""All made environments of TensorFlow, healthy and sick, each with the doctor's right verdict.

``python -m tests.rigs.made_cases NAME`` prints what the doctor says of one as people read it, without a name their names.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

from jupyter_tfguard.doctor import checks
from jupyter_tfguard.doctor.check import CheckResult, exit_code
from jupyter_tfguard.doctor.environment import Environment
from jupyter_tfguard.doctor.text import text

from . import made_builds, made_gpus, made_libraries, made_packages, made_releases
from .made_machine import MadeMachine
from .nvml.library import build

CASES = (
    *made_releases.CASES,
    *made_builds.CASES,
    *made_packages.CASES,
    *made_gpus.CASES,
    *made_libraries.CASES,
)


def stack_checks(machine: Environment) -> dict[str, list[CheckResult]]:
    """What each check of the TensorFlow stack says, by its file's name without ``tensorflow_``; without the silent ones."""
    found = {}
    for module in pkgutil.iter_modules(checks.__path__):
        if module.name.startswith("tensorflow_"):
            result = importlib.import_module(f"{checks.__name__}.{module.name}").check(machine)
            if result is not None:
                results = result if isinstance(result, list) else [result]
                found[module.name.removeprefix("tensorflow_")] = results
    return found


def main(names: list[str]) -> None:
    """Print what the doctor says of environments, or the names of all."""
    for case in CASES:
        if not names:
            print(case)
        if case.name in names:
            with tempfile.TemporaryDirectory() as folder:
                standin = build(Path(folder)) or Path(folder)
                machine = MadeMachine(Path(folder) / "made")
                case.make(machine, standin)
                found = stack_checks(machine.environment(**(case.given or {})))
                results = [result for several in found.values() for result in several]
                print(f"--- {case}")
                print(text(results))
                print(f"exit code {exit_code(results)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
