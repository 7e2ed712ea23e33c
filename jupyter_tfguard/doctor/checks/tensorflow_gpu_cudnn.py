"""Which cuDNN TensorFlow would load, whether it is new enough, and whether its files are of one version."""

from __future__ import annotations

from packaging.version import Version

from ...collectors.shared_libraries import FoundBy
from ...diagnosis.catalog.cudnn import cudnn_fit, cudnn_libraries
from ...diagnosis.catalog.origin import released
from ..build import Build
from ..check import CheckResult, Status
from ..cuda_files import fitting_instead, folders_first, install_libraries, no_runtime, why_missing
from ..environment import Environment
from ..library_version import FoundLibrary, found_libraries

NAME = "cuDNN"


def check(machine: Environment) -> CheckResult | None:
    """The first copy in the loader's order against the build, then the rest of its files."""
    build = machine.gpu_build
    if build is None:
        return None
    wanted = released(build.cudnn or "")
    if build.cudnn is None or wanted is None:
        return CheckResult(NAME, Status.OK, f"{build} does not tell which one it was built with")
    soname = f"libcudnn.so.{wanted.major}"
    copies = found_libraries(machine, soname)
    if not copies:
        # Where nothing of CUDA is installed, one sentence says so.
        return None if no_runtime(machine, build) else _missing(machine, build, soname)
    first = copies[0]
    if first.version is None:
        text = f"{first.copy.path} does not tell its version; {build} was built with {build.cudnn}"
        return CheckResult(NAME, Status.UNKNOWN, text, install_libraries(machine, build))
    fit = cudnn_fit(first.version, build.cudnn)
    if fit is not None and not fit.fits:
        return _too_old(machine, build, copies)
    return _mixed(machine, build, first, wanted) or _fine(build, copies)


def _missing(machine: Environment, build: Build, soname: str) -> CheckResult:
    text = f"{soname} is not found: without it {build} computes on the processor"
    more, fix = why_missing(machine, build, [soname])
    return CheckResult(NAME, Status.PROBLEM, text + more, fix)


def _too_old(machine: Environment, build: Build, copies: list[FoundLibrary]) -> CheckResult:
    first = copies[0]
    text = (
        f"{first}, by {first.copy.found_by.value}, is older than {build.cudnn}, which {build} was built "
        "with: convolutions fail"
    )
    fitting = [c for c in copies[1:] if c.version and _fits(c.version, build)]
    if not fitting:
        fix = fitting_instead(machine, build, [first.copy], fitting_behind=False)
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    text += f". A fitting copy, {fitting[0]}, is never reached"
    fix = None
    if first.copy.found_by is FoundBy.VARIABLE:
        fix = folders_first([fitting[0].copy.path.parent])
    return CheckResult(NAME, Status.PROBLEM, text, fix)


def _mixed(
    machine: Environment, build: Build, first: FoundLibrary, wanted: Version
) -> CheckResult | None:
    for part in cudnn_libraries(wanted.major):
        found = found_libraries(machine, part.file)
        if not found or found[0].copy.path.parent == first.copy.path.parent:
            continue
        if found[0].version and first.version and not _same(found[0].version, first.version):
            text = (
                f"its files come from two versions: {first.copy.path.name} {first}, {part.file} {found[0]}; "
                "cuDNN may refuse that"
            )
            fix = fitting_instead(machine, build, [found[0].copy], fitting_behind=len(found) > 1)
            return CheckResult(NAME, Status.WARNING, text, fix)
    return None


def _fine(build: Build, copies: list[FoundLibrary]) -> CheckResult:
    first = copies[0]
    text = f"{first}, by {first.copy.found_by.value}; built with {build.cudnn}"
    if "." not in (build.cudnn or ""):
        text += ", its minor version is not known"
    others = [c for c in copies[1:] if c.version != first.version]
    if others:
        text += f". Other copies: {', '.join(map(str, others))}"
    return CheckResult(NAME, Status.OK, text)


def _fits(version: str, build: Build) -> bool:
    fit = cudnn_fit(version, build.cudnn or "")
    return fit is not None and fit.fits


def _same(one: str, other: str) -> bool:
    a, b = released(one), released(other)
    return a is None or b is None or a.release[:3] == b.release[:3]
