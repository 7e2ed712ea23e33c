"""All made environments of TensorFlow, healthy and sick, each with the doctor's right verdict."""

from __future__ import annotations

import importlib
import pkgutil

from jupyter_tfguard.doctor import checks
from jupyter_tfguard.doctor.check import CheckResult
from jupyter_tfguard.doctor.environment import Environment

from . import made_builds, made_gpus, made_libraries, made_packages, made_releases

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
