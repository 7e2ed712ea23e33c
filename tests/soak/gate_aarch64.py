"""Tries the allocation gate on an emulated aarch64 processor: the programs of ``gate_versions.py``, with QEMU.

    python -m tests.soak.gate_aarch64 [--only NAME ...] [--keep FOLDER] [--json]

Needs root, the Debian packages ``debootstrap`` and ``qemu-user-static``, and ziglang from PyPI. Exit code 1 when a row failed.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.guard import test_gate
from tests.rigs.trials import ROOT, Outcome, try_rows
from tests.soak.gate_versions import tried_programs

_DEBIAN = "bookworm"
_PYTHON = "3.11"
_PLATFORMS = tuple(f"manylinux{name}_aarch64" for name in ("2014", "_2_17", "_2_27", "_2_28"))
_NEEDED = ("debootstrap", "qemu-aarch64-static", "dpkg")


@dataclass(frozen=True)
class Row:
    """One combination to try."""

    name: str
    packages: tuple[str, ...]


ROWS = (
    Row("2.17", ("tensorflow==2.17.*", "numpy==1.26.*", "pandas==2.2.*")),
    Row("2.21", ("tensorflow==2.21.*", "numpy", "pandas")),
)


def main() -> int:
    return try_rows(str(__doc__).splitlines()[0], ROWS, _prepare, _try)


def _prepare(folder: Path) -> str | None:
    """A Debian with Python, and our package with a gate for it, below the folder. Returns why not, or None."""
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing:
        return f"not found: {', '.join(missing)}"
    system, source = folder / "system", folder / "source"
    if not system.exists():
        subprocess.run(
            ["debootstrap", "--foreign", "--arch=arm64", "--variant=minbase", "--include=python3,python3-distutils",
             _DEBIAN, system],
            check=True, stdout=sys.stderr,
        )  # fmt: skip
        for package in (system / "var/cache/apt/archives").glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, system], check=True)
        shutil.rmtree(system / "dev")  # the machine's own is used
    shutil.rmtree(source, ignore_errors=True)
    for part in ("jupyter_tfguard", "tests"):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [sys.executable, ROOT / "labextension/scripts/build_gate.py", "--target", "aarch64",
         "--out", source / "jupyter_tfguard/guard/_gate.so"],
        check=True, stdout=sys.stderr,
    )  # fmt: skip
    return None


def _try(row: Row, reason: str | None, folder: Path) -> Outcome:
    if reason is not None:
        return "not run", reason
    packages = folder / row.name / "site-packages"  # the gate tells code of packages by this name
    if not packages.exists():
        platforms = [part for name in _PLATFORMS for part in ("--platform", name)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--target", packages, *platforms,
             "--only-binary=:all:", "--python-version", _PYTHON, "psutil", "traitlets",
             *row.packages],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            shutil.rmtree(packages, ignore_errors=True)
            return "not run", done.stderr.strip()[-300:]
    system = folder / "system"
    command = ["qemu-aarch64-static", "-L", system, system / f"usr/bin/python{_PYTHON}"]
    python = folder / row.name / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(packages))} exec {shlex.join(map(str, command))} "$@"\n'
    )
    python.chmod(0o755)
    test_gate.PYTHON, test_gate.ROOT = str(python), folder / "source"
    return tried_programs()


if __name__ == "__main__":
    sys.exit(main())
