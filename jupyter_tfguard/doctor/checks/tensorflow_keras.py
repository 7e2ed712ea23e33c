"""Do Keras, or the legacy tf_keras, and TensorFlow go together."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement

from ...collectors.packages import Package, find_package
from ..build import Build
from ..check import CheckResult, Status
from ..environment import Environment
from ..requirements import Fit, fit_of, judged, need

NAME = "Keras"
LEGACY_VARIABLE = "TF_USE_LEGACY_KERAS"


def check(machine: Environment) -> CheckResult | None:
    """The package that ``tf.keras`` comes from: keras, or tf_keras where ``TF_USE_LEGACY_KERAS`` asks for it."""
    build = machine.build
    if build is None:
        return None
    if machine.environ.get(LEGACY_VARIABLE, "").lower() in ("1", "true"):
        return _legacy(machine, build)
    wanted = need(machine, "keras")
    if wanted is None:
        return None
    fix = machine.pip("install", wanted.wanted)
    if wanted.found is None:
        text = f"not installed; {build} takes tf.keras from it and asks for {wanted.asked}"
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    said = f"{wanted.found.version}; {build} asks for {wanted.asked}"
    too_far = wanted.fit in (Fit.BELOW, Fit.ABOVE_MAJOR)
    problem = "tf.keras does not work with this one" if too_far else None
    return judged(NAME, wanted, said, fix, problem)


def _legacy(machine: Environment, build: Build) -> CheckResult:
    series = ".".join(build.version.split(".")[:2])
    fix = machine.pip("install", f"tf-keras=={series}.*")
    found = find_package("tf-keras", machine.import_folders)
    if found is None:
        text = f"{LEGACY_VARIABLE} asks for tf_keras, which is not installed"
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    wanted = _tensorflow_of(found)
    if wanted is None or fit_of(build.version, wanted.specifier) is Fit.FITS:
        text = f"tf_keras {found.version}, as {LEGACY_VARIABLE} asks"
        return CheckResult(NAME, Status.OK, text)
    text = f"{LEGACY_VARIABLE} asks for tf_keras; tf_keras {found.version} asks for {wanted}, here is {build}"
    return CheckResult(NAME, Status.PROBLEM, text, fix)


def _tensorflow_of(package: Package) -> Requirement | None:
    for line in package.requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.name == "tensorflow":
            return requirement
    return None
