"""Is there an NVIDIA GPU, and can this TensorFlow reach it: build, driver, container, what hides it."""

from __future__ import annotations

from ...collectors.driver import DRIVER_LIBRARY, NvidiaHardware
from ..check import CheckResult, Status
from ..cuda_files import with_gpu_by_conda
from ..drivers import hand_gpu_over, install_driver
from ..environment import VISIBLE_VARIABLE, Environment

NAME = "GPU"


def check(machine: Environment) -> CheckResult | None:
    """What the OS kernel shows of GPUs and drivers, before any library is asked."""
    build, hardware = machine.build, machine.nvidia
    if build is None:
        return None
    if machine.system != "linux":
        return CheckResult(NAME, Status.OK, "NVIDIA GPUs are looked at on Linux only")
    if not hardware.is_there:
        text = "no NVIDIA GPU on this machine: TensorFlow computes on the processor"
        if build.uses_cuda:
            text += "; what it says about CUDA at its start is harmless here"
        return CheckResult(NAME, Status.OK, text)
    if not build.uses_cuda:
        return _without_cuda(machine)
    if machine.gpu_withheld:
        return _withheld(machine)
    return _driver_missing(machine, hardware) or _out_of_reach(machine, hardware) or _fine(machine)


def _without_cuda(machine: Environment) -> CheckResult:
    build = machine.build
    assert build is not None
    if build.uses_rocm:
        text = f"{build} was built for AMD's GPUs; the NVIDIA GPU of this machine is not used"
        return CheckResult(NAME, Status.WARNING, text)
    if build.uses_cuda is None:
        text = f"whether {build} uses NVIDIA GPUs cannot be told: its build information is missing"
        return CheckResult(NAME, Status.UNKNOWN, text)
    text = (
        f"{build} was built without CUDA: it computes on the processor, the NVIDIA GPU stays idle"
    )
    if machine.processor != "x86_64":
        text += f". The published builds for {machine.processor} have no GPU code"
        return CheckResult(NAME, Status.WARNING, text)
    if build.package.installer == "conda":
        return CheckResult(NAME, Status.WARNING, text, with_gpu_by_conda(machine, build))
    wanted = f"tensorflow[and-cuda]=={build.version}"
    fix = (
        f"{machine.pip('uninstall', '-y', build.package.name)} && {machine.pip('install', wanted)}"
    )
    return CheckResult(NAME, Status.WARNING, text, fix)


def _withheld(machine: Environment) -> CheckResult:
    if machine.in_container:
        text = "the machine has an NVIDIA GPU, but this container was started without it"
        return CheckResult(NAME, Status.WARNING, text, hand_gpu_over(machine))
    text = (
        "the NVIDIA GPU is set aside for a virtual machine (vfio-pci): TensorFlow does not see it"
    )
    return CheckResult(NAME, Status.WARNING, text)


def _driver_missing(machine: Environment, hardware: NvidiaHardware) -> CheckResult | None:
    if hardware.module_version or hardware.is_wsl or hardware.device_files:
        return None
    if hardware.open_driver:
        text = (
            f"the open-source driver {hardware.open_driver} runs the NVIDIA GPU; CUDA, and so TensorFlow, "
            "works with NVIDIA's own driver only"
        )
        return CheckResult(NAME, Status.PROBLEM, text, install_driver(machine))
    where = ", ".join(gpu.address for gpu in hardware.gpus)
    text = f"there is an NVIDIA GPU (PCI {where}), but NVIDIA's driver is not loaded"
    return CheckResult(NAME, Status.PROBLEM, text, install_driver(machine))


def _out_of_reach(machine: Environment, hardware: NvidiaHardware) -> CheckResult | None:
    if not machine.libraries.copies(DRIVER_LIBRARY):
        fix: str | None
        if hardware.is_wsl:
            text = f"Windows' GPU is there, but its library {DRIVER_LIBRARY} is not found"
            fix = "export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"
        else:
            driver = f"driver {hardware.module_version}" if hardware.module_version else "driver"
            text = f"NVIDIA's {driver} is loaded, but its library {DRIVER_LIBRARY} is not found"
            fix = hand_gpu_over(machine) if machine.in_container else install_driver(machine)
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    if machine.gpus_hidden:
        visible = machine.environ[VISIBLE_VARIABLE]
        text = f'{VISIBLE_VARIABLE}="{visible}" hides every GPU from TensorFlow'
        return CheckResult(NAME, Status.WARNING, text, f"unset {VISIBLE_VARIABLE}")
    return None


def _fine(machine: Environment) -> CheckResult:
    names = [gpu.name for gpu in machine.driver.gpus]
    count = len(names) or len(machine.nvidia.device_files) or len(machine.nvidia.gpus)
    which = f" ({', '.join(dict.fromkeys(names))})" if names else ""
    number = f"{count} NVIDIA GPU{'s' if count > 1 else ''}" if count else "an NVIDIA GPU"
    return CheckResult(NAME, Status.OK, f"{number}{which}")
