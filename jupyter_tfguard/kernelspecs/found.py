"""The kernel specifications that Jupyter finds on this machine: ``kernel.json``, and what starts the kernel.

Specifications that a server makes up itself (nb_conda_kernels, remote kernels) are not here: they have no file.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager

from ..errors import KernelSpecUnusable

KERNEL_FILE = "kernel.json"


@dataclass(frozen=True)
class FoundSpec:
    """One kernel specification.

    Attributes:
        name: As Jupyter knows it, in small letters.
        folder: The folder of its ``kernel.json``.
        text: That file's text, every byte of it.
        content: The same as JSON.
    """

    name: str
    folder: Path
    text: str
    content: dict[str, Any]

    @property
    def file(self) -> Path:
        """Its ``kernel.json``; IPython's own kernel may have none."""
        return self.folder / KERNEL_FILE

    @property
    def argv(self) -> list[str]:
        """The command that starts the kernel."""
        return [str(word) for word in self.content.get("argv", [])]

    @property
    def environ(self) -> dict[str, str]:
        """What it adds to the environment."""
        return {name: str(value) for name, value in self.content.get("env", {}).items()}


def kernel_specs() -> list[FoundSpec]:
    """All that can be read, by name."""
    return sorted(_readable(_manager()), key=lambda spec: spec.name)


def kernel_spec(name: str) -> FoundSpec:
    """The one that Jupyter takes for this name.

    Raises:
        KernelSpecUnusable: There is none, or it cannot be read.
    """
    manager = _manager()
    folders = manager.find_kernel_specs()
    folder = folders.get(name.lower())
    if folder is None:
        known = ", ".join(sorted(folders)) or "none"
        raise KernelSpecUnusable(f"No kernel is named {name!r} here. Known: {known}.")
    return _read(manager, name.lower(), Path(folder))


def _manager() -> Any:
    manager = KernelSpecManager()
    with warnings.catch_warnings():
        # IPython's folder is looked up for kernels too, and IPython warns when it cannot be written.
        warnings.simplefilter("ignore")
        manager.kernel_dirs  # noqa: B018 - the folders are looked up now
    return manager


def _readable(manager: Any) -> Iterator[FoundSpec]:
    for name, folder in manager.find_kernel_specs().items():
        try:
            yield _read(manager, name, Path(folder))
        except KernelSpecUnusable:
            continue  # Jupyter cannot start it either, and says so


def _read(manager: Any, name: str, folder: Path) -> FoundSpec:
    file = folder / KERNEL_FILE
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        text = json.dumps(manager.get_kernel_spec(name).to_dict())  # the one that ipykernel brings
    except (OSError, ValueError) as bad:
        raise KernelSpecUnusable(f"Could not read {file}: {bad}.") from bad
    try:
        content = json.loads(text)
    except ValueError as bad:
        raise KernelSpecUnusable(f"{file} is not valid JSON: {bad}.") from bad
    kinds = {"argv": list, "env": dict, "metadata": dict}
    if not isinstance(content, dict) or not all(
        isinstance(content.get(name, kind()), kind) for name, kind in kinds.items()
    ):
        raise KernelSpecUnusable(f"{file} is not a kernel specification.")
    return FoundSpec(name, folder, text, content)
