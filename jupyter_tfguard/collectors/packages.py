"""Installed packages, from the metadata that installers write next to each package. Imports none of them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """One installed distribution.

    Attributes:
        name: Name from its metadata: ``tensorflow-cpu``.
        version: None if its metadata is damaged.
        folder: The import folder that contains it.
        requires: Its ``Requires-Dist`` lines.
        requires_python: ``>=3.10``; None if it is not stated.
        extras: Extras that can be installed with it: ``and-cuda``.
        installer: The installer: ``pip``, ``conda``, ``uv``; None = unknown.
        tags: Interpreter, ABI and platform it was built for: ``cp311-cp311-manylinux_2_27_x86_64``.
    """

    name: str
    version: str | None
    folder: Path
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    extras: tuple[str, ...] = ()
    installer: str | None = None
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.version or 'of unknown version'}"


def find_packages(name: str, folders: Sequence[Path]) -> list[Package]:
    """Every copy of a package, in import order."""
    paths = [str(folder) for folder in folders]
    found = importlib.metadata.distributions(name=name, path=paths)
    return [_package(distribution, name) for distribution in found]


def find_package(name: str, folders: Sequence[Path]) -> Package | None:
    """The copy that an import finds; None if the package is not installed."""
    return next(iter(find_packages(name, folders)), None)


def library_owners(folders: Iterable[Path]) -> dict[Path, list[Package]]:
    """The packages that installed each shared library, from their lists of files; symbolic links are resolved.

    Two packages can have written the same file; the file has the content of the later one.
    """
    found: dict[Path, list[Package]] = {}
    for folder in folders:
        real = folder.resolve()  # lib64 of a virtual environment is a link
        for distribution in importlib.metadata.distributions(path=[str(folder)]):
            # Sample of RECORD: nvidia/cudnn/lib/libcudnn.so.9,sha256=...,104664
            lines = (_text(distribution, "RECORD") or "").splitlines()
            names = [line.split(",")[0] for line in lines if ".so" in line]
            if names:
                package = _package(distribution, "")
                for name in names:
                    found.setdefault(real / name, []).append(package)
    return found


def _package(distribution: importlib.metadata.Distribution, name: str) -> Package:
    headers = _headers(_text(distribution, "METADATA") or _text(distribution, "PKG-INFO"))
    return Package(
        name=headers.get("Name") or name,
        version=headers.get("Version"),
        folder=Path(str(distribution.locate_file(""))),
        requires=tuple(headers.get_all("Requires-Dist") or ()),
        requires_python=headers.get("Requires-Python"),
        extras=tuple(headers.get_all("Provides-Extra") or ()),
        installer=(_text(distribution, "INSTALLER") or "").strip() or None,
        tags=tuple(_headers(_text(distribution, "WHEEL")).get_all("Tag") or ()),
    )


def _text(distribution: importlib.metadata.Distribution, name: str) -> str | None:
    try:
        return distribution.read_text(name)
    except (OSError, UnicodeDecodeError):  # damaged, or owned by another user
        return None


def _headers(text: str | None) -> Message:
    # The description after the first empty line is long and not needed.
    return HeaderParser().parsestr((text or "").split("\n\n", 1)[0])
