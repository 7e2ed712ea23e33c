"""Checks for an NVIDIA GPU that this TensorFlow can use: build, driver, container, variables that hide it."""

from __future__ import annotations

from ..build import Build
from ..check import CheckResult, Status
from ..environment import DRIVER_LIBRARY, INSTALL_DRIVER, VISIBLE_VARIABLE, Environment
from ..libraries import find_libraries, install_libraries

NAME = "GPU"
_HAND_OVER = "docker run --gpus all ..."


def check(machine: Environment) -> CheckResult | None:
    """Check what the OS kernel shows about GPUs and drivers, before any library is called."""
    build, hardware = machine.build, machine.nvidia
    if build is None or machine.system != "linux":
        return None
    if not hardware.is_there:
        text = "no NVIDIA GPU on this machine: TensorFlow runs on the CPU"
        if build.uses_cuda:
            text += "; its messages about CUDA at start are harmless here"
        return CheckResult(NAME, Status.OK, text)
    if not build.uses_cuda:
        return _without_cuda(machine, build)
    if machine.gpu_withheld:
        text = "the machine has an NVIDIA GPU, but this container was started without it"
        return CheckResult(NAME, Status.WARNING, text, _HAND_OVER)
    if not hardware.has_driver:
        text = "this machine has an NVIDIA GPU, but NVIDIA's driver is not loaded"
        if hardware.pci_drivers[0]:
            text += f": {hardware.pci_drivers[0]} drives it, which does not support CUDA"
        return CheckResult(NAME, Status.PROBLEM, text, INSTALL_DRIVER)
    if not find_libraries(machine, DRIVER_LIBRARY):
        text = f"NVIDIA's driver is installed, but its library {DRIVER_LIBRARY} was not found"
        fix = _HAND_OVER if machine.in_container else INSTALL_DRIVER
        if hardware.is_wsl:
            fix = "export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    if machine.gpus_hidden:
        text = f'{VISIBLE_VARIABLE}="{machine.environ[VISIBLE_VARIABLE]}" hides every GPU from TensorFlow'
        return CheckResult(NAME, Status.WARNING, text, f"unset {VISIBLE_VARIABLE}")
    names = [gpu.name for gpu in machine.driver.gpus]
    return CheckResult(NAME, Status.OK, ", ".join(names) or "an NVIDIA GPU")


def _without_cuda(machine: Environment, build: Build) -> CheckResult:
    if build.uses_cuda is None:
        text = f"unknown whether {build} uses NVIDIA GPUs: its build information is missing"
        return CheckResult(NAME, Status.UNKNOWN, text)
    text = f"{build} was built without CUDA: it runs on the CPU and does not use the NVIDIA GPU"
    if machine.processor != "x86_64":
        text += f". The published builds for {machine.processor} have no GPU code"
        return CheckResult(NAME, Status.WARNING, text)
    if build.package.installer == "conda":
        return CheckResult(NAME, Status.WARNING, text, install_libraries(machine, build))
    remove = machine.pip("uninstall", "-y", build.package.name)
    install = machine.pip("install", f"tensorflow[and-cuda]=={build.version}")
    return CheckResult(NAME, Status.WARNING, text, f"{remove} && {install}")
