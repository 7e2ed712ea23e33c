"""Python environments beside the one that runs the tests: without tfguard, as the kernels of a conda set-up have them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.rigs.network import enter_outer_network

_OURS = ("jupyter_tfguard", "_jupyter_tfguard", "tfguard")
_HEAVY = ("tensorflow", "keras", "jupyterlab", "numpy", "pandas")


class CannotInstall(Exception):
    """No package index answers, or it does not have the package."""


def interpreter(versions: Sequence[str]) -> str | None:
    """An interpreter of one of these versions that really starts (a version manager's shim may not)."""
    for version in versions:
        found = shutil.which(f"python{version}")
        if (
            found
            and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return found
    return None


def linked_environment(home: Path) -> Path:
    """A virtual environment with this one's packages, but for tfguard and the heavy ones; its interpreter."""
    python = _make(home, sys.executable, "--without-pip")
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    there = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for folder in (Path(entry) for entry in sys.path if entry.endswith("site-packages")):
        for item in folder.iterdir():
            plain = item.name.lower().replace("-", "_").removesuffix(".py").removesuffix(".pth")
            if not plain.startswith((*_OURS, *_HEAVY)) and not (there / item.name).exists():
                (there / item.name).symlink_to(item)
    return python


def installed_environment(home: Path, packages: Sequence[str], python: str | None = None) -> Path:
    """A virtual environment with these packages from the package index; its interpreter.

    Raises:
        CannotInstall: With the end of what pip says.
    """
    inside = home / "bin" / "python"
    if not inside.exists():
        inside = _make(home, python or sys.executable)
        done = subprocess.run(
            [str(inside), "-m", "pip", "install", "-q", "--retries", "0", *packages],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=enter_outer_network,
        )
        if done.returncode != 0:
            shutil.rmtree(home)
            raise CannotInstall(done.stderr[-600:])
    return inside


def _make(home: Path, python: str, *options: str) -> Path:
    subprocess.run([python, "-m", "venv", *options, str(home)], check=True)
    return home / "bin" / "python"


def write_kernel(folder: Path, python: Path, **more: object) -> str:
    """A ``kernel.json`` as people have them, with things of their own and in their own hand; its text."""
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Zweite Umgebung – ⚗",
        "language": "python",
        "env": {"PYTHONPATH": str(folder / "mine"), "OWN": "1"},
        "metadata": {"debugger": True},
    } | more
    text = json.dumps(spec, indent=3, ensure_ascii=False) + "\r\n\r\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_bytes(text.encode())
    return text
