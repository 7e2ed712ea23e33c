"""The result of a check, and the discovery of the files in ``checks/``. There is no list to extend."""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from . import checks as checks_package
from .environment import Environment


class Status(enum.Enum):
    """Result of one check."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "could not check"


@dataclass(frozen=True)
class CheckResult:
    """What was compared, the result, and the one command that fixes the problem."""

    name: str
    status: Status
    text: str
    fix: str | None = None


class Checks(TypedDict):
    """What the checks found about this environment, in the order in which they ran."""

    schema_version: Literal[1]
    checks: list[CheckResult]


# None: the check does not apply to this machine
Check = Callable[[Environment], CheckResult | list[CheckResult] | None]


def run_checks(machine: Environment) -> list[CheckResult]:
    """Run all checks, in the order of their file names. An exception becomes a result and is never raised."""
    results: list[CheckResult] = []
    for module in pkgutil.iter_modules(checks_package.__path__):
        try:
            check: Check = importlib.import_module(f"{checks_package.__name__}.{module.name}").check
            found = check(machine)
        except Exception as bad:  # the other checks still run
            found = CheckResult(module.name, Status.UNKNOWN, f"{type(bad).__name__}: {bad}")
        results += found if isinstance(found, list) else [] if found is None else [found]
    return results


def to_json(results: list[CheckResult]) -> dict[str, Any]:
    """The document :class:`Checks`, as JSON values."""
    checks = [{**vars(result), "status": result.status.value} for result in results]
    return {"schema_version": 1, "checks": checks}


def exit_code(results: list[CheckResult]) -> int:
    """0: ok or only warnings; 1: at least one problem; 2: something could not be checked."""
    found = {result.status for result in results}
    if Status.PROBLEM in found:
        return 1
    return 2 if Status.UNKNOWN in found else 0
