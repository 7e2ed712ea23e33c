"""Does NVIDIA's driver work, is it of one piece, and new enough for the CUDA that TensorFlow was built with."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from ...collectors.driver import DRIVER_LIBRARY
from ...collectors.shared_libraries import Copy, FoundBy
from ...diagnosis.catalog.cuda import minimum_driver
from ..build import Build
from ..check import CheckResult, Status
from ..cuda_files import without_folders
from ..drivers import install_driver
from ..environment import Environment

NAME = "NVIDIA driver"
_LOOK = 'nvidia-smi || sudo dmesg | grep -iE "nvrm|xid"'


def check(machine: Environment) -> CheckResult | None:
    """The module in the OS kernel, the library that programs load, and what that says when it is asked."""
    build, hardware = machine.gpu_build, machine.nvidia
    if build is None or not (hardware.module_version or hardware.is_wsl):
        return None
    copies = machine.libraries.copies(DRIVER_LIBRARY)
    if not copies:
        return None
    return (
        _of_two_versions(machine, copies)
        or _too_old(machine, build, copies[0])
        or _no_answer(machine)
        or _fine(machine, build, copies[0])
    )


def _of_two_versions(machine: Environment, copies: list[Copy]) -> CheckResult | None:
    loaded, first = machine.nvidia.module_version, copies[0]
    if loaded is None or first.version is None or first.version == loaded or _is_compat(first):
        return None
    text = (
        f"the OS kernel runs driver {loaded}, but programs load {first.path}, which is of {first.version}: "
        "CUDA refuses to start"
    )
    if machine.in_container:
        text += (
            ". Start the container anew; if that does not help, its image has a driver library of its own, "
            "which does not belong there"
        )
        return CheckResult(NAME, Status.PROBLEM, text)
    if any(copy.version == loaded for copy in copies[1:]) and first.found_by is FoundBy.VARIABLE:
        return CheckResult(NAME, Status.PROBLEM, text, without_folders(machine, [first]))
    return CheckResult(
        NAME,
        Status.PROBLEM,
        f"{text}. So it is after an update until the machine is restarted",
        "sudo reboot",
    )


def _too_old(machine: Environment, build: Build, library: Copy) -> CheckResult | None:
    version = _version(machine, library)
    needed = minimum_driver(build.cuda) if build.cuda else None
    if needed is None or version is None:
        return None
    if machine.nvidia.is_wsl:  # the version is that of Windows' driver, so its CUDA is compared
        brings = machine.driver.cuda_driver_version
        fits = brings is None or _major(brings) >= _major(needed.cuda)
    else:
        fits = needed.fits(version) is not False
    if fits:
        return None
    text = (
        f"{version} is too old for {build}: CUDA {build.cuda}, which it was built with, needs "
        f"{needed.driver} or newer"
    )
    if machine.nvidia.is_wsl:
        text += "; update the NVIDIA driver of Windows"
    return CheckResult(NAME, Status.PROBLEM, text, install_driver(machine))


def _no_answer(machine: Environment) -> CheckResult | None:
    answer = machine.driver
    if answer.mismatch:
        return CheckResult(NAME, Status.PROBLEM, str(answer.reason), "sudo reboot")
    if answer.absent:
        return None  # the check of the architecture says so: nothing else needs that library
    version = machine.nvidia.module_version or answer.driver_version or "of unknown version"
    if answer.reason is not None:
        text = (
            f"{answer.reason.rstrip('.')}. Loaded is driver {version}; TensorFlow may meet the same"
        )
        return CheckResult(NAME, Status.UNKNOWN, text, _LOOK)
    if not answer.gpus:
        text = f"driver {version} answers, but lists no GPU: it fell off the bus, or did not start"
        return CheckResult(NAME, Status.PROBLEM, text, _LOOK)
    return None


def _fine(machine: Environment, build: Build, library: Copy) -> CheckResult:
    version = _version(machine, library)
    needed = minimum_driver(build.cuda) if build.cuda else None
    if version is None:
        return CheckResult(NAME, Status.UNKNOWN, "it does not tell its version", _LOOK)
    if needed is None:
        text = f"{version}; which driver CUDA {build.cuda or 'of this build'} needs is in no table"
        return CheckResult(NAME, Status.OK, text)
    text = f"{version}; CUDA {build.cuda} needs {needed.driver} or newer"
    return CheckResult(NAME, Status.OK, text)


def _version(machine: Environment, library: Copy) -> str | None:
    if _is_compat(library) and library.version:
        return library.version
    known = machine.nvidia.module_version or library.version
    return known or machine.driver.driver_version


def _is_compat(library: Copy) -> bool:
    # The package cuda-compat puts a newer library in front of an older driver, on cards that allow it.
    return "compat" in library.path.parts


def _major(version: str) -> int:
    try:
        return Version(version).major
    except InvalidVersion:
        return 0
