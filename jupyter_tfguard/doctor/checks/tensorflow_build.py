"""Checks which TensorFlow an import would find, and that it is a single, complete package."""

from __future__ import annotations

from ...collectors.versions import InstalledTensorFlow
from ..build import Build
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "TensorFlow"


def check(machine: Environment) -> CheckResult:
    """Check the packages that provide TensorFlow, in the order of the import folders."""
    installed, build = machine.tensorflow, machine.build
    if installed is None:
        text = "not installed in this environment; nothing to check"
        return CheckResult(NAME, Status.OK, text)
    if installed.hidden:
        path, hidden = installed.folder, installed.hidden[0]
        text = f"{path} comes before {hidden} in {hidden.folder} on the import path: `import tensorflow` loads {path}"
        fix = f"mv {path} {path.with_name('my_' + path.name)}"
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    if build is None:
        text = f"{installed.folder} has no complete package metadata, so its version is unknown"
        return CheckResult(NAME, Status.WARNING, text, machine.pip("install", "tensorflow"))
    return _over_each_other(machine, installed, build) or _one(build)


def _over_each_other(
    machine: Environment, installed: InstalledTensorFlow, build: Build
) -> CheckResult | None:
    # tensorflow-intel belongs to the tensorflow package that requires it.
    named = {line.split(";")[0].split("=")[0].strip() for line in build.package.requires}
    overlapping = [
        p
        for p in installed.packages[1:]
        if p.name not in named and p.folder == build.package.folder
    ]
    if not overlapping:
        return None
    names = " and ".join(map(str, (build.package, *overlapping)))
    text = (
        f"{names} are installed over each other in {build.package.folder}: "
        "the folder `tensorflow` contains a mixture of them"
    )
    uninstall = machine.pip("uninstall", "-y", *(p.name for p in installed.packages))
    fix = f"{uninstall} && {machine.pip('install', f'{build.package.name}=={build.version}')}"
    return CheckResult(NAME, Status.PROBLEM, text, fix)


def _one(build: Build) -> CheckResult:
    text = f"{build}, built without CUDA"
    if build.uses_cuda:
        text = f"{build}, built for CUDA {build.cuda} and cuDNN {build.cudnn}"
    if not build.in_table:
        text += "; it is not in tfguard's table of published builds, so it is checked by its own metadata only"
    return CheckResult(NAME, Status.OK, text)
