"""What a check is, and how the files in ``checks/`` are found: no list to extend."""

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
    """What was compared, how it stands, and the one command that mends it."""

    name: str
    status: Status
    text: str
    fix: str | None = None


class Checks(TypedDict):
    """What the checks found about this environment, in the order in which they ran."""

    schema_version: Literal[1]
    checks: list[CheckResult]


# None: it has no subject on this machine
Check = Callable[[Environment], CheckResult | list[CheckResult] | None]


def run_checks(machine: Environment) -> list[CheckResult]:
    """All checks, in the order of their files' names. One that breaks is reported as such, never raised."""
    results: list[CheckResult] = []
    for module in pkgutil.iter_modules(checks_package.__path__):
        try:
            check: Check = importlib.import_module(f"{checks_package.__name__}.{module.name}").check
            found = check(machine)
        except Exception as bad:  # the other checks are still worth having
            found = CheckResult(module.name, Status.UNKNOWN, f"{type(bad).__name__}: {bad}")
        results += found if isinstance(found, list) else [] if found is None else [found]
    return results


def to_json(results: list[CheckResult]) -> dict[str, Any]:
    """The document :class:`Checks`, as JSON values."""
    checks = [{**vars(result), "status": result.status.value} for result in results]
    return {"schema_version": 1, "checks": checks}


def exit_code(results: list[CheckResult]) -> int:
    """0 when all is well or only warnings stand, 1 with a problem, 2 when something could not be checked."""
    found = {result.status for result in results}
    if Status.PROBLEM in found:
        return 1
    return 2 if Status.UNKNOWN in found else 0
