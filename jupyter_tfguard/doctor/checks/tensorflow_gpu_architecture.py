"""Has this TensorFlow code for the GPUs of this machine."""

from __future__ import annotations

from ...diagnosis.catalog.cuda import minimum_driver
from ...diagnosis.catalog.gpu_arch import (
    ArchCoverage,
    Coverage,
    arch_covered,
    code_covers,
    family_of,
)
from ...diagnosis.catalog.tensorflow import builds
from ..build import Build, python_was_tested
from ..check import CheckResult, Status
from ..drivers import install_driver
from ..environment import Environment

NAME = "GPU architecture"


def check(machine: Environment) -> CheckResult | None:
    """The compute capability that the driver tells of each GPU, against the code that the build says it holds."""
    build = machine.gpu_build
    if build is None or (not machine.nvidia.device_files and not machine.nvidia.is_wsl):
        return None
    answer = machine.driver
    if answer.absent:
        text = "only libnvidia-ml.so.1 tells the compute capability of a GPU, and it is not found"
        return CheckResult(NAME, Status.UNKNOWN, text, _with_utilities(machine))
    if answer.reason is not None or not answer.gpus:
        return None  # the check of the driver has said so
    if not build.gpu_code:
        return CheckResult(NAME, Status.OK, f"{build} does not tell for which GPUs it holds code")
    worst: CheckResult | None = None
    for gpu in answer.gpus:
        result = _of_one(machine, build, gpu.name, gpu.compute_capability)
        if worst is None or _RANK[result.status] > _RANK[worst.status]:
            worst = result
    return worst


_RANK = {Status.OK: 0, Status.UNKNOWN: 1, Status.WARNING: 2, Status.PROBLEM: 3}


def _with_utilities(machine: Environment) -> str | None:
    if not machine.in_container:
        return install_driver(machine)
    return "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."


def _of_one(machine: Environment, build: Build, name: str, capability: str | None) -> CheckResult:
    held = None if capability is None else code_covers(build.gpu_code, capability)
    if capability is None or held is None:
        text = f"the driver does not tell the compute capability of {name}"
        return CheckResult(NAME, Status.UNKNOWN, text)
    family = family_of(capability)
    gpu = f"{name} (compute capability {capability}{f', {family.name}' if family else ''})"
    if held.coverage is Coverage.NATIVE:
        return CheckResult(NAME, Status.OK, f"machine code {held.code} for {gpu}")
    if held.coverage is Coverage.NONE:
        text = f"{build} holds no code for {gpu}, only {', '.join(build.gpu_code)}"
        return CheckResult(NAME, Status.PROBLEM, text, _other_release(machine, capability))
    text = (
        f"{build} holds no machine code for {gpu}: the driver compiles {held.code} at the first use, which "
        "may take half an hour"
    )
    return CheckResult(NAME, Status.WARNING, text + _known_of(machine, build, capability, held))


def _known_of(machine: Environment, build: Build, capability: str, held: ArchCoverage) -> str:
    table = None if build.not_in_table else arch_covered(build.version, capability)
    if table is not None and table.reported:
        return f". {table.reported}"
    needed = minimum_driver(build.cuda) if build.cuda else None
    version = machine.driver.driver_version
    if needed is not None and version is not None and needed.compiles_ptx(version) is False:
        return f". Driver {version} may be too old to compile it; {needed.toolkit_driver} is not"
    return ""


def _other_release(machine: Environment, capability: str) -> str | None:
    for known in builds():  # newest first
        held = code_covers(known.gpu_code, capability)
        fits = known.tested is not None and python_was_tested(
            known.tested.python, machine.python_version
        )
        if held is not None and held.coverage is Coverage.NATIVE and fits:
            extra = "[and-cuda]" if known.and_cuda else ""
            return machine.pip("install", f"tensorflow{extra}=={known.version}")
    return None
