"""Checks that this TensorFlow contains code for the GPUs of this machine."""

from __future__ import annotations

from ...diagnosis.catalog.gpu_arch import Coverage, arch_covered, code_covers, family_of
from ...diagnosis.catalog.tensorflow import builds
from ..build import Build
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "GPU architecture"


def check(machine: Environment) -> list[CheckResult] | None:
    """Compare each GPU's compute capability, from the driver, with the code that the build declares."""
    build = machine.gpu_build
    if build is None or (not machine.nvidia.device_files and not machine.nvidia.is_wsl):
        return None
    answer = machine.driver
    if answer.absent:
        text = "only libnvidia-ml.so.1 can read the compute capability, and it was not found"
        fix = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."
        return [CheckResult(NAME, Status.UNKNOWN, text, fix if machine.in_container else None)]
    if not build.gpu_code or not answer.gpus:
        return None
    found = {gpu.compute_capability: gpu.name for gpu in answer.gpus}
    return [_of_one(machine, build, name, capability) for capability, name in found.items()]


def _of_one(machine: Environment, build: Build, name: str, capability: str | None) -> CheckResult:
    held = None if capability is None else code_covers(build.gpu_code, capability)
    if capability is None or held is None:
        text = f"the driver does not report the compute capability of {name}"
        return CheckResult(NAME, Status.UNKNOWN, text)
    family = family_of(capability)
    gpu = f"{name} (compute capability {capability}{f', {family}' if family else ''})"
    if held.coverage is Coverage.NATIVE:
        return CheckResult(NAME, Status.OK, f"machine code {held.code} for {gpu}")
    if held.coverage is Coverage.NONE:
        text = f"{build} contains no code for {gpu}, only {', '.join(build.gpu_code)}"
        return CheckResult(NAME, Status.PROBLEM, text, _other_release(machine, capability))
    text = (
        f"{build} contains no machine code for {gpu}: the driver compiles {held.code} at first use, which can take "
        "half an hour"
    )
    known = arch_covered(build.version, capability) if build.in_table else None
    if known is not None and known.reported:
        text += f". {known.reported}"
    return CheckResult(NAME, Status.WARNING, text)


def _other_release(machine: Environment, capability: str) -> str | None:
    """The command for the newest build with code for this GPU."""
    for known in builds():
        held = code_covers(known.gpu_code, capability)
        if held is not None and held.coverage is Coverage.NATIVE:
            extra = "[and-cuda]" if known.and_cuda else ""
            return machine.pip("install", f"tensorflow{extra}=={known.version}")
    return None
