"""Which TensorFlow an import would find, and whether it is one and whole."""

from __future__ import annotations

from ...collectors.packages import Package
from ...collectors.versions import InstalledTensorFlow
from ...diagnosis.catalog.tensorflow import builds
from ..build import Build
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "TensorFlow"


def check(machine: Environment) -> CheckResult:
    """The packages that provide it, in the order of the import folders."""
    installed = machine.tensorflow
    if installed is None:
        text = "it is not installed in this environment; nothing to check"
        return CheckResult(NAME, Status.OK, text)
    build = machine.build
    if installed.hidden:
        return _in_the_way(installed)
    if build is None:
        text = f"{installed.folder} has no whole package metadata beside it, so its version is not known"
        return CheckResult(NAME, Status.WARNING, text, machine.pip("install", "tensorflow"))
    if not (installed.folder / "__init__.py").is_file():
        text = f"the package {build} is installed, but its folder {installed.folder} is not there"
        fix = machine.pip("install", "--force-reinstall", "--no-deps", _exactly(build.package))
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    return _several(machine, installed, build) or _one(build)


def _in_the_way(installed: InstalledTensorFlow) -> CheckResult:
    path, hidden = installed.folder, installed.hidden[0]
    text = f"{path} is found before {hidden} in {hidden.folder}: `import tensorflow` loads that"
    is_file = path.suffix == ".py"
    fix = f"mv {path} {path.with_name('my_' + path.name)}"
    return CheckResult(NAME, Status.PROBLEM if is_file else Status.WARNING, text, fix)


def _several(
    machine: Environment, installed: InstalledTensorFlow, build: Build
) -> CheckResult | None:
    named = {line.split(";")[0].split("=")[0].strip() for line in build.package.requires}
    others = [p for p in installed.packages[1:] if p.name not in named]
    beside = [p for p in others if p.folder == build.package.folder]
    if beside:
        names = " and ".join(map(str, (build.package, *beside)))
        text = (
            f"{names} are installed over each other in {build.package.folder}: "
            "the folder `tensorflow` holds a mixture of them"
        )
        same = {p.version for p in beside} == {build.version}
        uninstall = machine.pip("uninstall", "-y", *_names(installed.packages))
        fix = f"{uninstall} && {machine.pip('install', _exactly(build.package))}"
        return CheckResult(NAME, Status.WARNING if same else Status.PROBLEM, text, fix)
    if others:
        hidden = ", ".join(f"{p} in {p.folder}" for p in others)
        text = f"{build} in {build.package.folder} is found first and hides {hidden}"
        fix = machine.pip("uninstall", build.package.name)
        return CheckResult(NAME, Status.WARNING, text, fix)
    return None


def _one(build: Build) -> CheckResult:
    if build.uses_cuda is None:
        made_for = "its build information cannot be read"
    elif build.uses_cuda:
        made_for = f"built for CUDA {build.cuda} and cuDNN {build.cudnn}"
    else:
        made_for = "built for AMD's GPUs (ROCm)" if build.uses_rocm else "built without CUDA"
    if build.not_in_table is None:
        return CheckResult(NAME, Status.OK, f"{build}, {made_for}")
    known = builds()
    text = (
        f"{build}, {made_for}, is not in the table of published builds ({known[-1].version} to "
        f"{known[0].version}): {build.not_in_table}. It is judged by its own metadata alone"
    )
    return CheckResult(NAME, Status.WARNING, text)


def _exactly(package: Package) -> str:
    return f"{package.name}=={package.version}"


def _names(packages: tuple[Package, ...]) -> list[str]:
    return list(dict.fromkeys(p.name for p in packages))
