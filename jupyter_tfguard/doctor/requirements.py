"""What the installed TensorFlow asks of other packages, by its own metadata, and how what is installed fits."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..collectors.packages import Package, find_package
from .check import CheckResult, Status
from .environment import Environment

_LOWER, _UPPER = (">=", "~=", "=="), ("<", "<=", "~=", "==")


class Fit(enum.Enum):
    """How an installed version lies to the range that was asked for."""

    FITS = "fits"
    MISSING = "missing"
    BELOW = "below"
    ABOVE = "above, same major version"
    ABOVE_MAJOR = "above, later major version"
    EXCLUDED = "left out by name"
    UNKNOWN = "no version"


@dataclass(frozen=True)
class Need:
    """One package that TensorFlow asks for.

    Attributes:
        name: As TensorFlow writes it.
        range: The versions it asks for.
        found: The copy that an import would find; None when there is none.
    """

    name: str
    range: SpecifierSet
    found: Package | None
    fit: Fit

    @property
    def asked(self) -> str:
        """The range for people, lower limit first: ``>=1.26.0,<2.2.0``; without the single versions it leaves out."""
        # "<5.0.0dev" is written for "<5.0.0": pip reads both, people the shorter one.
        parts = [str(one).removesuffix("dev") for one in self.range if one.operator != "!="]
        return ",".join(sorted(parts, reverse=True)) or "any version"

    @property
    def fine(self) -> str:
        """What is said of one that fits."""
        return f"{self.found.version if self.found else ''}, as asked ({self.asked})"

    @property
    def wanted(self) -> str:
        """As pip takes it: ``numpy>=1.26.0,<2.2.0``."""
        return f"{self.name}{self.asked if self.range else ''}"


def needs(machine: Environment, extra: str = "") -> list[Need]:
    """What TensorFlow asks for on this machine, with one of its extras; empty when its metadata says nothing."""
    return [_need(machine, wanted) for wanted in _asked(machine, extra)]


def need(machine: Environment, name: str) -> Need | None:
    """What TensorFlow asks of one package; None when it asks nothing."""
    asked = (w for w in _asked(machine) if canonicalize_name(w.name) == canonicalize_name(name))
    wanted = next(asked, None)
    return None if wanted is None else _need(machine, wanted)


def _asked(machine: Environment, extra: str = "") -> Iterator[Requirement]:
    for line in machine.build.package.requires if machine.build else ():
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if wanted.marker is None or wanted.marker.evaluate(_markers(machine, extra)):
            yield wanted


def _need(machine: Environment, wanted: Requirement) -> Need:
    found = find_package(wanted.name, machine.import_folders)
    fit = Fit.MISSING if found is None else fit_of(found.version, wanted.specifier)
    return Need(wanted.name, wanted.specifier, found, fit)


def judged(name: str, wanted: Need, said: str, fix: str, problem: str | None) -> CheckResult:
    """What is told of a package that is installed.

    Args:
        name: Of the check.
        wanted: The package.
        said: Beginning of the sentence where it does not fit: what is here, and what was asked.
        fix: The command that mends it.
        problem: Why TensorFlow does not run with such a version; None where it was only not tested.
    """
    if wanted.fit is Fit.FITS:
        return CheckResult(name, Status.OK, wanted.fine)
    if wanted.fit is Fit.UNKNOWN:
        return CheckResult(name, Status.UNKNOWN, f"{said}: its metadata is damaged", fix)
    if problem is not None:
        return CheckResult(name, Status.PROBLEM, f"{said}: {problem}", fix)
    text = f"{said}: it was not tested with this one"
    return CheckResult(name, Status.WARNING, text, fix)


def fit_of(version: str | None, wanted: SpecifierSet) -> Fit:
    """How a version lies to a range."""
    try:
        here = Version(version or "")
    except InvalidVersion:
        return Fit.UNKNOWN
    if wanted.contains(here, prereleases=True):
        return Fit.FITS
    lowest = (Version(s.version.removesuffix(".*")) for s in wanted if s.operator in _LOWER)
    if any(here < limit for limit in lowest):
        return Fit.BELOW
    highest = highest_major(wanted)
    if any(s.operator == "!=" and not s.contains(here, prereleases=True) for s in wanted):
        return Fit.EXCLUDED
    return Fit.ABOVE_MAJOR if highest is not None and here.major > highest else Fit.ABOVE


def highest_major(wanted: SpecifierSet) -> int | None:
    """The highest major version that a range lets in: 4 for ``<5.0.0dev``; None without an upper limit."""
    limits = []
    for one in wanted:
        if one.operator not in _UPPER:
            continue
        release = Version(one.version.removesuffix(".*")).release
        excluded = one.operator == "<" and not any(release[1:])
        limits.append(release[0] - 1 if excluded else release[0])
    return min(limits, default=None)


def _markers(machine: Environment, extra: str) -> dict[str, str]:
    return {
        "python_version": ".".join(machine.python_version.split(".")[:2]),
        "python_full_version": machine.python_version,
        "sys_platform": machine.system,
        "platform_machine": machine.processor,
        "extra": extra,
    }
