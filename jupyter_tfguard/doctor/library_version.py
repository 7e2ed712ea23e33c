"""Which version a library file is: by the package that put it there, else by the name of the file itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..collectors.shared_libraries import Copy
from .environment import Environment


@dataclass(frozen=True)
class FoundLibrary:
    """One copy of a library, and what it is.

    Attributes:
        version: ``9.3.0.75`` of a package, ``9.3.0`` of a file name; None when neither tells.
    """

    copy: Copy
    version: str | None

    def __str__(self) -> str:
        version = self.version or "of unknown version"
        return f"{version} in {self.copy.path.parent}"


def found_libraries(machine: Environment, soname: str) -> list[FoundLibrary]:
    """Every copy that answers to this name; the first is the one that TensorFlow loads."""
    return [
        FoundLibrary(copy, _version(machine, copy)) for copy in machine.libraries.copies(soname)
    ]


def _version(machine: Environment, copy: Copy) -> str | None:
    versions = {p.version for p in machine.library_owners.get(copy.path.resolve(), ())}
    if len(versions) == 1:
        return versions.pop()
    return None if versions else copy.version  # two packages wrote it: which came last is not known
