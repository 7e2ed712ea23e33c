"""The kernel specifications that Jupyter finds on this machine: ``kernel.json`` and the command in it.

Specifications that a server generates (nb_conda_kernels, remote kernels) are not included: they have no file.
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
        name: Jupyter's name for it, in lower case.
        folder: The folder of its ``kernel.json``.
        text: The unchanged text of that file.
        content: The text parsed as JSON.
    """

    name: str
    folder: Path
    text: str
    content: dict[str, Any]

    @property
    def file(self) -> Path:
        """Its ``kernel.json``; IPython's default kernel may have none."""
        return self.folder / KERNEL_FILE

    @property
    def argv(self) -> list[str]:
        """The command that starts the kernel."""
        return [str(word) for word in self.content.get("argv", [])]

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables that it sets."""
        return {name: str(value) for name, value in self.content.get("env", {}).items()}


def kernel_specs() -> list[FoundSpec]:
    """All readable specifications, sorted by name."""
    return sorted(_readable(_manager()), key=lambda spec: spec.name)


def kernel_spec(name: str) -> FoundSpec:
    """The specification that Jupyter uses for this name.

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
        # Jupyter searches IPython's folder too, and IPython warns if the folder is not writable.
        warnings.simplefilter("ignore")
        manager.kernel_dirs  # noqa: B018 - resolves the folders now
    return manager


def _readable(manager: Any) -> Iterator[FoundSpec]:
    for name, folder in manager.find_kernel_specs().items():
        try:
            yield _read(manager, name, Path(folder))
        except KernelSpecUnusable:
            continue  # Jupyter cannot start it either, and reports that


def _read(manager: Any, name: str, folder: Path) -> FoundSpec:
    file = folder / KERNEL_FILE
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        text = json.dumps(
            manager.get_kernel_spec(name).to_dict()
        )  # the default kernel of ipykernel
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
