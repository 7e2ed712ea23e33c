"""Which CUDA libraries TensorFlow would load: are they all there, and of a version it was built with."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from ...diagnosis.catalog.cuda_libraries import CudaLibrary
from ..build import Build
from ..check import CheckResult, Status
from ..cuda_files import EXTRA, fitting_instead, no_runtime, opened_libraries, why_missing
from ..environment import Environment
from ..library_version import FoundLibrary, found_libraries
from ..requirements import Fit, fit_of, needs

NAME = "CUDA libraries"


def check(machine: Environment) -> CheckResult | None:
    """By the names that TensorFlow opens, in the order in which the dynamic loader looks."""
    build = machine.gpu_build
    if build is None:
        return None
    wanted = opened_libraries(build)
    if not wanted:
        text = f"which libraries CUDA {build.cuda or 'of this build'} has is in no table"
        return CheckResult(NAME, Status.OK, text)
    found = {library: found_libraries(machine, library.file) for library in wanted}
    missing = [library.file for library, copies in found.items() if not copies]
    if missing:
        return _missing(machine, build, missing)
    return _versions(machine, build, found)


def _missing(machine: Environment, build: Build, missing: list[str]) -> CheckResult:
    is_are = "is" if len(missing) == 1 else "are"
    names = f"{', '.join(missing)} {is_are} not found"
    if no_runtime(machine, build) and len(missing) > 1:
        names = f"{missing[0]} and {len(missing) - 1} others of CUDA {build.cuda} are not found"
    text = f"{names}: {build} computes on the processor, and says so in one line at its start only"
    more, fix = why_missing(machine, build, missing)
    return CheckResult(NAME, Status.PROBLEM, text + more, fix)


def _versions(
    machine: Environment, build: Build, found: dict[CudaLibrary, list[FoundLibrary]]
) -> CheckResult:
    asked = {n.name: n.range for n in needs(machine, EXTRA) if n.name.startswith("nvidia-")}
    too_old = {
        library: copies
        for library, copies in found.items()
        if library.package in asked and _below(copies[0], asked[library.package])
    }
    first = next(iter(found.values()))[0]
    if not too_old:
        text = f"{first}, by {first.copy.found_by.value}; all {len(found)} are there"
        return CheckResult(NAME, Status.OK, text)
    library, copies = next(iter(too_old.items()))
    wanted = next(n for n in needs(machine, EXTRA) if n.name == library.package)
    more = f" (and {len(too_old) - 1} more so)" if len(too_old) > 1 else ""
    text = (
        f"{library.file} is {copies[0]}, by {copies[0].copy.found_by.value}, older than {build} asks for, "
        f"{wanted.asked}{more}"
    )
    behind = all(any(not _below(c, asked[k.package]) for c in v[1:]) for k, v in too_old.items())
    if behind:
        text += ". Newer ones are installed and never reached"
    wrong = [copies[0].copy for copies in too_old.values()]
    fix = fitting_instead(machine, build, wrong, fitting_behind=behind)
    return CheckResult(NAME, Status.WARNING, text, fix)


def _below(found: FoundLibrary, wanted: SpecifierSet) -> bool:
    return fit_of(found.version, wanted) is Fit.BELOW
