"""Enables and disables the guard for a kernel of another environment. Installs nothing into that environment."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import KernelSpecUnusable
from .command import CONFIG_FILE, config_file_of, with_guard, without_guard
from .found import FoundSpec, kernel_spec
from .interpreter import OLDEST_PYTHON, Interpreter, ask

_ASK_SECONDS = 30.0  # `conda run` takes several seconds
# Source: KernelManager.kernel_spec, which a manager reads only once.
_RESTART = "A running kernel keeps its old command, even after a restart. Shut it down, then start it again."


@dataclass(frozen=True)
class KernelChange:
    """What was done to a kernel.

    Attributes:
        kernel: Its name.
        done: ``enabled``, ``enabled before``, ``has its own``, ``disabled`` or ``was not enabled``.
        file: Its ``kernel.json``.
        versions: Of its Python, ipykernel and TensorFlow; empty when nobody asked.
        text: The same for people, one sentence per line.
        schema_version: Of this document's JSON Schema.
    """

    kernel: str
    done: str
    file: Path
    versions: dict[str, str | None]
    text: str
    schema_version: Literal[1] = 1


def enable(name: str) -> KernelChange:
    """Make a kernel load the guard at its next start.

    Raises:
        KernelSpecUnusable: There is no such kernel, the guard cannot run in it, or its file cannot be changed.
    """
    spec = kernel_spec(name)
    python = ask(spec, CONFIG_FILE, seconds=_ASK_SECONDS)
    versions = python.versions()
    who = f"Kernel {spec.name} ({_titled(versions)})"
    if python.has_guard and config_file_of(spec.argv) is None:
        text = f"{who} already has its own tfguard, in {python.prefix}. Nothing to do."
        return KernelChange(spec.name, "has its own", spec.file, versions, text)
    _check(spec, python)
    after = with_guard(without_guard(spec.text), CONFIG_FILE)
    undo = f"Undo: jupyter tfguard enable --kernel {spec.name} --off"
    if after == spec.text:
        text = f"{who} already loads the guard, through {spec.file}.\n{undo}"
        return KernelChange(spec.name, "enabled before", spec.file, versions, text)
    _write(spec, after)
    text = f"{who} will load the guard at its next start, through {spec.file}. Nothing was installed.\n{_RESTART}\n{undo}"
    return KernelChange(spec.name, "enabled", spec.file, versions, text)


def disable(name: str) -> KernelChange:
    """Undo :func:`enable`: restore the kernel's command.

    Raises:
        KernelSpecUnusable: There is no such kernel, or its file cannot be changed.
    """
    spec = kernel_spec(name)
    if config_file_of(spec.argv) is None:
        text = f"Kernel {spec.name} was not enabled. Nothing to undo."
        return KernelChange(spec.name, "was not enabled", spec.file, {}, text)
    _write(spec, without_guard(spec.text))
    text = f"Kernel {spec.name} will start without the guard.\n{_RESTART}"
    return KernelChange(spec.name, "disabled", spec.file, {}, text)


def _titled(versions: dict[str, str | None]) -> str:
    titles = {"python": "Python", "ipykernel": "ipykernel", "tensorflow": "TensorFlow"}
    return ", ".join(f"{titles[name]} {version}" for name, version in versions.items() if version)


def _check(spec: FoundSpec, python: Interpreter) -> None:
    if python.is_too_old:
        needed = ".".join(map(str, OLDEST_PYTHON))
        found = ".".join(map(str, python.version))
        raise KernelSpecUnusable(
            f"Kernel {spec.name} runs Python {found}; the guard needs Python {needed} or newer. "
            "The server still reports what it sees from outside."
        )
    if not python.sees_us:
        raise KernelSpecUnusable(
            f"Kernel {spec.name} cannot open {CONFIG_FILE}: it runs in a container, or as another user. "
            "Install jupyter-tfguard into its environment instead."
        )


def _write(spec: FoundSpec, text: str) -> None:
    """Replace the file atomically, with the mode of the old file.

    Raises:
        KernelSpecUnusable: It belongs to another user, or is a link into a package store.
    """
    temporary = spec.file.with_name(f".{spec.file.name}.{os.getpid()}")
    try:
        if spec.file.is_symlink():
            raise OSError("it is a symbolic link")
        temporary.write_bytes(text.encode())
        shutil.copymode(spec.file, temporary)
        os.replace(temporary, spec.file)
    except OSError as bad:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise KernelSpecUnusable(
            f"Could not change {spec.file}: {bad.strerror or bad}. Run this command as the owner of the file, or first copy the kernel into your own "
            f"folder: jupyter kernelspec install --user {spec.folder} --name {spec.name}-tfguard"
        ) from bad
