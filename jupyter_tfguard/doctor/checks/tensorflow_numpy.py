"""Is the installed NumPy one that the installed TensorFlow can be loaded with."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from ...diagnosis.catalog.origin import released
from ..check import CheckResult, Status
from ..environment import Environment
from ..requirements import Fit, judged, need

NAME = "NumPy"
# Releases before this one were built for NumPy 1, also those that set no upper limit.
# Source: the note `numpy` of the table tensorflow_builds.
_FIRST_FOR_NUMPY_2 = Version("2.18")
_PROBLEMS = {
    Fit.BELOW: "it is too old for TensorFlow's native code",
    Fit.ABOVE_MAJOR: "native code for an earlier major version does not load under it",
}


def check(machine: Environment) -> CheckResult | None:
    """By TensorFlow's own range; native code for NumPy 1 does not load under NumPy 2."""
    build, wanted = machine.build, need(machine, "numpy")
    if build is None or wanted is None:
        return None
    release = released(build.version)
    for_numpy_1 = release is not None and release < _FIRST_FOR_NUMPY_2
    if wanted.found is None:
        text = f"not installed; {build} asks for {wanted.asked}"
        return CheckResult(NAME, Status.PROBLEM, text, machine.pip("install", wanted.wanted))
    version = wanted.found.version
    said = f"{version} in {wanted.found.folder}; {build} asks for {wanted.asked}"
    if for_numpy_1 and _major(version) >= 2:
        text = (
            f"{said} and was built for NumPy 1: its native code does not load under NumPy {version}"
        )
        asked = wanted.wanted if wanted.fit is not Fit.FITS else f"{wanted.wanted},<2"
        return CheckResult(NAME, Status.PROBLEM, text, machine.pip("install", asked))
    fix = machine.pip("install", wanted.wanted)
    return judged(NAME, wanted, said, fix, _PROBLEMS.get(wanted.fit))


def _major(version: str | None) -> int:
    try:
        return Version(version or "").major
    except InvalidVersion:
        return 0
