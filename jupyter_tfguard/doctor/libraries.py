"""Finds the CUDA and cuDNN files that TensorFlow would load, their versions, and how to install others.

Folders are searched in the dynamic loader's order: ``LD_LIBRARY_PATH``, the run path of TensorFlow's wheels (NVIDIA's
packages in the same folder; conda's ``lib``), the system's folders. Nothing is loaded. Not detected: another run path
of a custom build, and libraries that another package has already loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .build import Build
from .environment import Environment

PATH_VARIABLE = "LD_LIBRARY_PATH"
EXTRA = "and-cuda"
_SYSTEM = (
    "/lib/{processor}-linux-gnu",
    "/usr/lib/{processor}-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


@dataclass(frozen=True)
class Library:
    """One file found for a library name.

    Attributes:
        version: Version of the package that installed it, ``9.3.0.75``, or from the file name, ``9.3.0`` of
            ``libcudnn.so.9 -> libcudnn.so.9.3.0``; None if neither has more detail than the name that is opened.
        by_variable: True if it was found through ``LD_LIBRARY_PATH``.
    """

    path: Path
    version: str | None
    by_variable: bool

    def __str__(self) -> str:
        return f"{self.version or 'of unknown version'} in {self.path.parent}"


def find_libraries(machine: Environment, soname: str) -> list[Library]:
    """All files with this name, each once. The first one is loaded."""
    found: dict[Path, Library] = {}
    for folder, by_variable in _folders(machine):
        path = folder / soname
        if path.is_file() and path.resolve() not in found:
            version = _version(machine, path.resolve(), soname)
            found[path.resolve()] = Library(path, version, by_variable)
    return list(found.values())


def install_libraries(machine: Environment, build: Build) -> str:
    """The command that installs the libraries for this TensorFlow."""
    if build.package.installer == "conda":
        return (
            f'conda install -p {machine.prefix} -c conda-forge "tensorflow={build.version}=cuda*"'
        )
    return machine.pip("install", f"{build.package.name}[{EXTRA}]=={build.version}")


def without_folders(machine: Environment, libraries: Sequence[Library]) -> str:
    """The command that removes the folders of these files from ``LD_LIBRARY_PATH``; kernels inherit it."""
    folders = {library.path.parent.resolve() for library in libraries}
    entries = machine.environ.get(PATH_VARIABLE, "").split(":")
    kept = [entry for entry in entries if entry and Path(entry).resolve() not in folders]
    command = f"export {PATH_VARIABLE}={':'.join(kept)}" if kept else f"unset {PATH_VARIABLE}"
    return f"{command} # then restart Jupyter"


def _folders(machine: Environment) -> Iterator[tuple[Path, bool]]:
    # An empty or relative entry depends on the current folder, which differs per notebook, so it is not searched.
    for entry in machine.environ.get(PATH_VARIABLE, "").split(":"):
        if entry.startswith("/"):
            yield Path(entry), True
    own = [machine.prefix / "lib"]
    if machine.tensorflow is not None:
        own += sorted(machine.tensorflow.folder.parent.glob("nvidia/*/lib"))
    for folder in (*own, *_configured(machine)):
        yield folder, False


def _configured(machine: Environment) -> list[Path]:
    """The system's folders. Source: ld.so(8), and ldconfig(8) for the files that list more folders."""
    further = []
    for file in sorted(machine.path("/etc/ld.so.conf.d").glob("*.conf")):
        lines = file.read_text("utf-8", "replace").splitlines()
        further += [line.strip() for line in lines if line.startswith("/")]
    usual = [folder.format(processor=machine.processor) for folder in _SYSTEM]
    return [machine.path(folder) for folder in (*further, *usual)]


def _version(machine: Environment, file: Path, soname: str) -> str | None:
    owners = {package.version for package in machine.library_owners.get(file, ())}
    if owners:  # if two packages wrote it, the last one is unknown
        return owners.pop() if len(owners) == 1 else None
    by_name, opened = _VERSION.search(file.name), _VERSION.search(soname)
    if by_name is None or (opened is not None and by_name[1] == opened[1]):
        return None
    return by_name[1]
