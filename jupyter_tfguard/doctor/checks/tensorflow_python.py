"""Is this a Python that the installed TensorFlow was made for."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from ...diagnosis.catalog.tensorflow import builds
from ..build import Build, python_was_tested
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "Python"


def check(machine: Environment) -> CheckResult | None:
    """``Requires-Python`` and the wheel's tags, then the Pythons that the project tested the release with."""
    build = machine.build
    if build is None:
        return None
    here = machine.python_version
    if not _allowed(build.package.requires_python, here):
        text = (
            f"{machine.python} is Python {here}; {build} asks for {build.package.requires_python}"
        )
        return CheckResult(NAME, Status.PROBLEM, text, _fix(machine, build))
    made_for = _made_for(build.package.tags)
    if made_for and _short(here) not in made_for:
        text = (
            f"{machine.python} is Python {here}; the {build} that is installed holds machine code "
            f"for Python {', '.join(made_for)} and cannot be imported"
        )
        return CheckResult(NAME, Status.PROBLEM, text, _fix(machine, build))
    if build.tested is not None and not python_was_tested(build.tested.python, here):
        text = f"Python {here}; {build} was tested with Python {build.tested.python}"
        return CheckResult(NAME, Status.WARNING, text, _fix(machine, build))
    return CheckResult(NAME, Status.OK, f"{here}, as {build} asks")


def _allowed(wanted: str | None, version: str) -> bool:
    try:
        return wanted is None or SpecifierSet(wanted).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True


def _made_for(tags: tuple[str, ...]) -> list[str]:
    """``3.11`` of ``cp311-cp311-manylinux_2_27_x86_64``; empty when it runs with any."""
    found = []
    for tag in tags:
        hit = re.match(r"cp(\d)(\d+)-(cp|none)", tag)
        if hit is None:  # py3-none-any, cp39-abi3
            return []
        found.append(f"{hit[1]}.{hit[2]}")
    return list(dict.fromkeys(found))


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _fix(machine: Environment, build: Build) -> str:
    here = machine.python_version
    for known in builds():  # newest first
        if known.tested is not None and python_was_tested(known.tested.python, here):
            return machine.pip("install", "--upgrade", f"tensorflow=={known.version}")
    newest = build.tested or builds()[0].tested
    python = newest.python.split("-")[-1] if newest else _short(here)
    return (
        f"python{python} -m venv tf-env && "
        f"tf-env/bin/python -m pip install tensorflow ipykernel jupyter-tfguard"
    )
