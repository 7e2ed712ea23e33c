"""Checks that the CUDA libraries and cuDNN that TensorFlow would load exist and are new enough for the build."""

from __future__ import annotations

from ...diagnosis.catalog.cuda import cuda_libraries, cudnn_fits, cudnn_libraries
from ...diagnosis.catalog.releases import released
from ..build import Build
from ..check import CheckResult, Status
from ..environment import Environment
from ..libraries import EXTRA, Library, find_libraries, install_libraries, without_folders
from .tensorflow_packages import older, requirements

CUDA = "CUDA libraries"
CUDNN = "cuDNN"


def check(machine: Environment) -> list[CheckResult] | None:
    """Search for the names that TensorFlow opens. The first file of each name counts."""
    build = machine.gpu_build
    cuda, cudnn = (
        (None, None) if build is None else (released(build.cuda or ""), released(build.cudnn or ""))
    )
    if build is None or cuda is None or cudnn is None:
        return None
    packages = cuda_libraries(cuda.major)
    opened = {name: find_libraries(machine, name) for name in packages}
    soname = f"libcudnn.so.{cudnn.major}"
    copies = find_libraries(machine, soname)
    missing = [name for name, found in (*opened.items(), (soname, copies)) if not found]
    if missing:
        names = missing[0] if len(missing) == 1 else f"{missing[0]} and {len(missing) - 1} others"
        text = (
            f"{names} of CUDA {build.cuda} and cuDNN {build.cudnn} not found: {build} runs on the CPU, "
            "and prints only one line about it at start"
        )
        return [CheckResult(CUDA, Status.PROBLEM, text, install_libraries(machine, build))]
    required = {one.name: one.specifier for one in requirements(machine, build, EXTRA)}
    old = [
        found[0]
        for name, found in opened.items()
        if packages[name] in required and older(found[0].version, required[packages[name]])
    ]
    return [
        _cuda(machine, build, next(iter(opened.values()))[0], old),
        _cudnn(machine, build, copies),
    ]


def _cuda(machine: Environment, build: Build, first: Library, old: list[Library]) -> CheckResult:
    if not old:
        return CheckResult(CUDA, Status.OK, f"all found, {first}")
    names = ", ".join(f"{library.path.name} {library.version}" for library in old)
    text = f"{names} in {old[0].path.parent} are older than {build} requires"
    return CheckResult(CUDA, Status.WARNING, text, _instead(machine, build, old))


def _cudnn(machine: Environment, build: Build, copies: list[Library]) -> CheckResult:
    first, built = copies[0], build.cudnn or ""
    if first.version is None:
        text = f"{first.path} does not show its version; {build} was built with {built}"
        return CheckResult(CUDNN, Status.UNKNOWN, text, install_libraries(machine, build))
    if cudnn_fits(first.version, built) is False:
        text = f"{first} is older than {built}, which {build} was built with: convolutions fail"
        return CheckResult(CUDNN, Status.PROBLEM, text, _instead(machine, build, [first]))
    for name in cudnn_libraries(int(built.split(".")[0])):
        part = next(iter(find_libraries(machine, name)), None)
        if part is not None and part.version and not _same(part.version, first.version):
            text = f"its files have two versions: {first.path.name} {first}, {name} {part}; cuDNN may refuse to start"
            return CheckResult(CUDNN, Status.WARNING, text, _instead(machine, build, [part]))
    return CheckResult(CUDNN, Status.OK, f"{first}; {build} was built with {built}")


def _instead(machine: Environment, build: Build, wrong: list[Library]) -> str:
    """The command that makes TensorFlow find other files than these."""
    if any(library.by_variable for library in wrong):
        return without_folders(machine, wrong)
    return install_libraries(machine, build)


def _same(one: str, other: str) -> bool:
    return one.split(".")[:3] == other.split(".")[:3]
