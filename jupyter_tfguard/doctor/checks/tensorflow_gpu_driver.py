"""Checks that NVIDIA's driver works, has one version, and is new enough for the CUDA version of TensorFlow."""

from __future__ import annotations

from ...diagnosis.catalog.cuda import minimum_driver
from ...diagnosis.catalog.releases import released
from ..build import Build
from ..check import CheckResult, Status
from ..environment import DRIVER_LIBRARY, INSTALL_DRIVER, Environment
from ..libraries import Library, find_libraries

NAME = "NVIDIA driver"
_COMMANDS = 'nvidia-smi || sudo dmesg | grep -iE "nvrm|xid"'


def check(machine: Environment) -> CheckResult | None:
    """Check the module in the OS kernel, the library that programs load, and the library's answer."""
    build, hardware = machine.gpu_build, machine.nvidia
    libraries = find_libraries(machine, DRIVER_LIBRARY)
    if build is None or not libraries or not (hardware.module_version or hardware.is_wsl):
        return None
    return (
        _of_two_versions(machine, libraries[0])
        or _too_old(machine, build, libraries[0])
        or _no_answer(machine)
        or CheckResult(
            NAME, Status.OK, f"{_version(machine, libraries[0])}; new enough for {build}"
        )
    )


def _of_two_versions(machine: Environment, library: Library) -> CheckResult | None:
    loaded = machine.nvidia.module_version
    if loaded is None or library.version in (None, loaded) or _is_compat(library):
        return None
    text = (
        f"the OS kernel runs driver {loaded}, but programs load {library.path}, which has version {library.version}: "
        "CUDA refuses to start"
    )
    if machine.in_container:
        text += ". Restart the container; its image must not contain its own driver library"
        return CheckResult(NAME, Status.PROBLEM, text)
    text += ". After a driver update, this lasts until the machine is restarted"
    return CheckResult(NAME, Status.PROBLEM, text, "sudo reboot")


def _too_old(machine: Environment, build: Build, library: Library) -> CheckResult | None:
    version = _version(machine, library)
    needed = minimum_driver(build.cuda) if build.cuda else None
    if needed is None or version is None:
        return None
    fits, where = needed.fits(version), ""
    if (
        machine.nvidia.is_wsl
    ):  # the version is that of the Windows driver, so CUDA versions are compared
        brings, wanted = released(machine.driver.cuda_driver_version or ""), released(needed.cuda)
        fits = brings is None or wanted is None or brings.major >= wanted.major
        where = "; update the NVIDIA driver of Windows"
    if fits is not False:
        return None
    text = f"{version} is too old for {build}: CUDA {build.cuda}, which it was built with, needs {needed.driver} or newer"
    return CheckResult(NAME, Status.PROBLEM, text + where, None if where else INSTALL_DRIVER)


def _no_answer(machine: Environment) -> CheckResult | None:
    answer = machine.driver
    if answer.mismatch:
        return CheckResult(NAME, Status.PROBLEM, str(answer.reason), "sudo reboot")
    if answer.absent:
        return None  # the architecture check reports it: nothing else needs that library
    if answer.reason is not None:
        return CheckResult(
            NAME, Status.UNKNOWN, f"{answer.reason}; TensorFlow may get the same error", _COMMANDS
        )
    if not answer.gpus:
        text = "the driver answers but lists no GPU: the GPU fell off the bus or did not start"
        return CheckResult(NAME, Status.PROBLEM, text, _COMMANDS)
    return None


def _version(machine: Environment, library: Library) -> str | None:
    if _is_compat(library) and library.version:
        return library.version
    return machine.nvidia.module_version or library.version or machine.driver.driver_version


def _is_compat(library: Library) -> bool:
    # The package cuda-compat combines a newer library with an older driver, on GPUs that support it.
    return "compat" in library.path.parts
