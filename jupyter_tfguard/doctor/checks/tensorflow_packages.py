"""Checks that the packages required by the installed TensorFlow are installed in compatible versions."""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from ...collectors.packages import Package, find_package
from ...diagnosis.catalog.releases import released
from ..build import Build
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "TensorFlow's dependencies"
# Older releases were built for NumPy 1, even if they set no upper limit.
# Source: the note `numpy` of the table tensorflow_builds.
_FIRST_FOR_NUMPY_2 = Version("2.18")
_LOWER = (">=", "~=", "==")
# No file of TensorFlow 2.15, 2.17 and 2.21 imports it, and they run without it.
_NEVER_IMPORTED = "libclang"


def check(machine: Environment) -> CheckResult | None:
    """Use TensorFlow's metadata. It does not run with older versions; newer versions were not tested with it.

    Native code for NumPy 1 does not load under NumPy 2.
    """
    build = machine.build
    wanted = [] if build is None else requirements(machine, build)
    if build is None or not wanted:
        return None
    found = {one: find_package(one.name, machine.import_folders) for one in wanted}
    misfits = {one: package for one, package in found.items() if not _fits(one, package)}
    if not misfits:
        return CheckResult(NAME, Status.OK, f"all {len(found)} are installed and compatible")
    broken = any(_stops(one, package) for one, package in misfits.items())
    text = f"{build} requires " + ", ".join(
        f"{_spec(one)} (here: {package.version or 'damaged' if package else 'missing'})"
        for one, package in misfits.items()
    )
    text += (
        ". It does not run with these versions"
        if broken
        else ". It was not tested with these versions"
    )
    fix = machine.pip("install", *map(_spec, misfits))
    return CheckResult(NAME, Status.PROBLEM if broken else Status.WARNING, text, fix)


def requirements(machine: Environment, build: Build, extra: str = "") -> list[Requirement]:
    """What TensorFlow needs of its requirements on this machine, with one of its extras."""
    markers = {
        "python_version": ".".join(machine.python_version.split(".")[:2]),
        "python_full_version": machine.python_version,
        "sys_platform": machine.system,
        "platform_machine": machine.processor,
        "extra": extra,
    }
    found = [r for r in map(Requirement, build.package.requires) if r.name != _NEVER_IMPORTED]
    wanted = [one for one in found if one.marker is None or one.marker.evaluate(markers)]
    release = released(build.version)
    for one in wanted:
        if one.name == "numpy" and release is not None and release < _FIRST_FOR_NUMPY_2:
            one.specifier &= SpecifierSet("<2")
    return wanted


def older(version: str | None, wanted: SpecifierSet) -> bool:
    """Whether a version is below the required one; False for an unknown version."""
    here = _version(version)
    lowest = [Version(s.version.removesuffix(".*")) for s in wanted if s.operator in _LOWER]
    return here is not None and any(here < limit for limit in lowest)


def _fits(wanted: Requirement, package: Package | None) -> bool:
    here = _version(package.version if package else None)
    return here is not None and wanted.specifier.contains(here, prereleases=True)


def _stops(wanted: Requirement, package: Package | None) -> bool:
    here = _version(package.version if package else None)
    if here is None or older(str(here), wanted.specifier):
        return True
    return wanted.name == "numpy" and here.major >= 2 and not wanted.specifier.contains("2.0.0")


def _version(text: str | None) -> Version | None:
    try:
        return Version(text or "")
    except InvalidVersion:
        return None


def _spec(one: Requirement) -> str:
    """In pip's syntax, lower limit first, without excluded single versions: ``numpy>=1.26.0,<2.2.0``."""
    # "<5.0.0dev" means "<5.0.0".
    parts = [str(part).removesuffix("dev") for part in one.specifier if part.operator != "!="]
    return one.name + ",".join(sorted(parts, reverse=True))
