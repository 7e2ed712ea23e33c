"""Give the kernel of another environment the guard, and take it back. Nothing is installed into that environment."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from ..errors import KernelSpecUnusable
from .argument import CONFIG_FILE, config_file_of, marker, with_guard, without_guard
from .found import KERNEL_FILE, FoundSpec, kernel_folders, kernel_spec
from .interpreter import OLDEST_PYTHON, Interpreter, ask

_ASK_SECONDS = 30.0  # `conda run` takes some
# Source: KernelManager.kernel_spec, which is read once in the life of a manager.
_ANEW = "One that runs now keeps its old command even when it is restarted: shut it down and start it anew."


@dataclass(frozen=True)
class Change:
    """What was done to a kernel.

    Attributes:
        kernel: Its name.
        done: ``enabled``, ``enabled before``, ``has its own``, ``disabled`` or ``was not enabled``.
        file: The ``kernel.json`` that speaks for it now.
        versions: Of its Python, ipykernel and TensorFlow; empty when nobody asked.
        text: The same for people, a line for each thought.
    """

    kernel: str
    done: str
    file: Path
    versions: dict[str, str | None]
    text: str


def enable(name: str) -> Change:
    """Make a kernel load the guard from its next start on.

    Raises:
        KernelSpecUnusable: There is no such kernel, it cannot have the guard, or its file cannot be changed.
    """
    spec = kernel_spec(name)
    python = ask(spec, CONFIG_FILE, seconds=_ASK_SECONDS)
    versions = python.versions()
    who = f"Kernel {spec.name} ({_told(versions)})"
    given = config_file_of(spec.content) is not None
    if python.has_guard and not given:
        text = f"{who} has a tfguard of its own, in {python.prefix}: there is nothing to do."
        return Change(spec.name, "has its own", spec.file, versions, text)
    _check(spec, python)
    overridden = marker(spec.content).get("overrides")
    before = without_guard(spec.text) if given else spec.text
    if isinstance(overridden, str):
        with contextlib.suppress(OSError, ValueError):  # gone: its last known text is kept
            before = (Path(overridden) / KERNEL_FILE).read_bytes().decode("utf-8")
        after = with_guard(before, CONFIG_FILE, overrides=Path(overridden))
    else:
        after = with_guard(before, CONFIG_FILE)
    undo = f"Undo: jupyter tfguard enable --kernel {spec.name} --off"
    if after == spec.text:
        text = f"{who} has the guard already, by {spec.file}.\n{undo}"
        return Change(spec.name, "enabled before", spec.file, versions, text)
    file = _write(spec, after)
    text = f"{who} has the guard from its next start on, by {file}. Nothing was installed there.\n{_ANEW}\n{undo}"
    return Change(spec.name, "enabled", file, versions, text)


def disable(name: str) -> Change:
    """Take the guard back: the file is again what it was.

    Raises:
        KernelSpecUnusable: There is no such kernel, or its file cannot be changed.
    """
    spec = kernel_spec(name)
    if config_file_of(spec.content) is None and not marker(spec.content):
        text = f"Kernel {spec.name} was not given the guard: there is nothing to undo."
        return Change(spec.name, "was not enabled", spec.file, {}, text)
    try:
        if "overrides" in marker(spec.content):
            shutil.rmtree(spec.folder)
        else:
            _replace(spec.file, without_guard(spec.text))
    except OSError as bad:
        raise KernelSpecUnusable(f"{spec.file} cannot be changed: {bad.strerror or bad}.") from bad
    text = (
        f"Kernel {spec.name} starts without the guard from its next start on, as before.\n{_ANEW}"
    )
    with contextlib.suppress(KernelSpecUnusable):
        spec = kernel_spec(name)
    return Change(spec.name, "disabled", spec.file, {}, text)


def _told(versions: dict[str, str | None]) -> str:
    titles = {"python": "Python", "ipykernel": "ipykernel", "tensorflow": "TensorFlow"}
    return ", ".join(f"{titles[name]} {version}" for name, version in versions.items() if version)


def _check(spec: FoundSpec, python: Interpreter) -> None:
    if python.is_too_old:
        needed = ".".join(map(str, OLDEST_PYTHON))
        found = ".".join(map(str, python.version))
        raise KernelSpecUnusable(
            f"Kernel {spec.name} runs Python {found}; the guard needs Python {needed} or newer. "
            "What the server sees from outside is reported all the same."
        )
    if not python.sees_us:
        raise KernelSpecUnusable(
            f"Kernel {spec.name} cannot open {CONFIG_FILE}: it runs in a container or as another user. "
            "Install jupyter-tfguard into its environment instead."
        )


def _write(spec: FoundSpec, text: str) -> Path:
    """Put the new text where the specification lies, or where Jupyter looks earlier; the file it went to."""
    if spec.file.is_file() and not spec.file.is_symlink() and os.access(spec.folder, os.W_OK):
        with contextlib.suppress(OSError):
            _replace(spec.file, text)
            return spec.file
    nearer = kernel_folders()
    if spec.folder.parent in nearer:
        nearer = nearer[: nearer.index(spec.folder.parent)]
    mine = Path(jupyter_data_dir()) / "kernels"
    for folder in sorted(nearer, key=lambda folder: folder != mine):
        with contextlib.suppress(OSError):
            return _stand_in(spec, folder / spec.folder.name)
    raise KernelSpecUnusable(
        f"{spec.file} cannot be changed, and no folder that Jupyter takes before it can be written. "
        "Run this as its owner, or start Jupyter with JUPYTER_PREFER_ENV_PATH=0 and run this again with it."
    )


def _stand_in(spec: FoundSpec, folder: Path) -> Path:
    """Make a specification of the same name that comes first; icons and scripts come along."""
    text = with_guard(spec.text, CONFIG_FILE, overrides=spec.folder)
    folder.mkdir(parents=True)
    try:
        for name in os.listdir(spec.folder):
            if name.startswith(("logo-", "kernel.")) and name != KERNEL_FILE:
                shutil.copyfile(spec.folder / name, folder / name)
        (folder / KERNEL_FILE).write_bytes(text.encode())
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder / KERNEL_FILE


def _replace(file: Path, text: str) -> None:
    """Write a file in one piece, with the rights of the old one."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(text.encode())
        shutil.copymode(file, temporary)
        os.replace(temporary, file)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
