"""Checks that the installed TensorFlow supports this Python version."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet

from ..check import CheckResult, Status
from ..environment import Environment

NAME = "Python"


def check(machine: Environment) -> CheckResult | None:
    """Compare ``Requires-Python`` and the wheel's tags with this Python."""
    build = machine.build
    if build is None:
        return None
    here, required = machine.python_version, build.package.requires_python
    made_for = _made_for(build.package.tags)
    allowed = required is None or SpecifierSet(required).contains(here, prereleases=True)
    if allowed and (not made_for or ".".join(here.split(".")[:2]) in made_for):
        return CheckResult(NAME, Status.OK, f"{here}, supported by {build}")
    wanted = (
        f"is built for Python {', '.join(made_for)}" if allowed else f"requires Python {required}"
    )
    text = f"{machine.python} is Python {here}; {build} {wanted} and cannot be imported"
    fix = machine.pip("install", "--force-reinstall", "tensorflow")
    return CheckResult(NAME, Status.PROBLEM, text, fix)


def _made_for(tags: tuple[str, ...]) -> list[str]:
    """``3.11`` from ``cp311-cp311-manylinux_2_27_x86_64``; empty if it runs with any version."""
    found = []
    for tag in tags:
        hit = re.match(r"cp(\d)(\d+)-(cp|none)", tag)
        if hit is None:  # py3-none-any, cp39-abi3
            return []
        found.append(f"{hit[1]}.{hit[2]}")
    return found
