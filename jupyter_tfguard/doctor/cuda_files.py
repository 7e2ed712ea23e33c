"""What to say and do when libraries of CUDA or cuDNN are not found where TensorFlow looks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..collectors.shared_libraries import PATH_VARIABLE, Copy, FoundBy
from ..diagnosis.catalog.cuda_libraries import CudaLibrary, cuda_libraries
from ..diagnosis.catalog.origin import released
from .build import Build
from .environment import Environment

EXTRA = "and-cuda"
_RESTART = "# then restart Jupyter"


def opened_libraries(build: Build) -> tuple[CudaLibrary, ...]:
    """The libraries of CUDA that this build opens by name; empty when no table knows them."""
    cuda = released(build.cuda or "")
    return () if cuda is None else cuda_libraries(cuda.major)


def no_runtime(machine: Environment, build: Build) -> bool:
    """Whether the CUDA runtime is not found: then CUDA is not installed for this build, and one sentence says so.

    Not all of the others may be missing: libcusolver is called .so.11 in CUDA 11 and in CUDA 12.
    """
    libraries = opened_libraries(build)
    return bool(libraries) and not machine.libraries.copies(libraries[0].file)


def why_missing(machine: Environment, build: Build, names: Sequence[str]) -> tuple[str, str | None]:
    """Where else something like them lies, to be added to a sentence, and the command that mends it."""
    folders = _unreached(machine, names)
    if folders:
        subject = "They are" if len(names) > 1 else "It is"
        text = (
            f". {subject} installed in {folders[0]}, where neither TensorFlow's own search path nor "
            f"{PATH_VARIABLE} leads"
        )
        # Those that they open in turn lie beside them, in folders of their own.
        every = sorted(folders[0].parents[1].glob("*/lib"))
        return text, folders_first(every)
    others = [copy for name in names for copy in machine.libraries.other_versions(name)]
    text = f". Of another version there is {others[0].path}" if others else ""
    fix = install_libraries(machine, build)
    if fix is None:
        text += f". Install CUDA {build.cuda} with cuDNN {build.cudnn} where the loader looks"
    return text, fix


def install_libraries(machine: Environment, build: Build) -> str | None:
    """The command that puts the libraries beside this TensorFlow; None when its package has no such extra."""
    if build.package.installer == "conda":
        return with_gpu_by_conda(machine, build)
    if EXTRA not in build.package.extras:
        return None
    return machine.pip("install", f"{build.package.name}[{EXTRA}]=={build.version}")


def with_gpu_by_conda(machine: Environment, build: Build) -> str:
    """The command for a TensorFlow that conda installed: its builds with CUDA bring the libraries."""
    return f'conda install -p {machine.prefix} -c conda-forge "tensorflow={build.version}=cuda*"'


def fitting_instead(
    machine: Environment, build: Build, wrong: Sequence[Copy], *, fitting_behind: bool
) -> str | None:
    """The command after which other files are found than these, of which fitting ones may lie behind them already."""
    steps = [] if fitting_behind else [install_libraries(machine, build)]
    if any(copy.found_by is FoundBy.VARIABLE for copy in wrong):
        steps.append(without_folders(machine, wrong))
    return " && ".join(step for step in steps if step) or None


def folders_first(folders: Sequence[Path]) -> str:
    """The command that puts folders in front of all others. Kernels have the variables of the server that starts them."""
    return f"export {PATH_VARIABLE}={':'.join(map(str, folders))}:${PATH_VARIABLE} {_RESTART}"


def without_folders(machine: Environment, copies: Sequence[Copy]) -> str:
    """The command that takes the folders of these files out of the variable."""
    folders = {copy.path.parent for copy in copies}
    entries = machine.environ.get(PATH_VARIABLE, "").split(":")
    kept = [entry for entry in entries if entry and Path(entry).resolve() not in folders]
    command = f"export {PATH_VARIABLE}={':'.join(kept)}" if kept else f"unset {PATH_VARIABLE}"
    return f"{command} {_RESTART}"


def _unreached(machine: Environment, names: Sequence[str]) -> list[Path]:
    return [
        file.parent
        for folder in machine.import_folders
        for name in names
        for file in sorted(folder.glob(f"nvidia/*/lib/{name}"))
    ]
