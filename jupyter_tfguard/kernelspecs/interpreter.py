"""The Python environment of a kernel: its interpreter prints its folders once; package versions are read from disk.

Nothing of that environment is imported: its interpreter runs one small script in isolated mode.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..errors import KernelSpecUnusable
from .command import STARTUP_FILE, python_command
from .found import FoundSpec

OLDEST_PYTHON = (3, 10)
_TENSORFLOWS = (
    "tensorflow",
    "tensorflow-cpu",
    "tf-nightly",
    "tensorflow-intel",
    "tensorflow-macos",
)
# Isolated mode leaves out the user's site packages, which a kernel outside a virtual environment has.
_SCRIPT = """
import json, os, site, sys
venv = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
own = [] if venv else [site.getusersitepackages()]
print(json.dumps([sys.version_info[:3], sys.prefix, sys.path + own, os.path.isfile(sys.argv[1])]))
"""


@dataclass(frozen=True)
class Interpreter:
    """The interpreter of a kernel.

    Attributes:
        version: Python version: ``(3, 10, 13)``.
        prefix: Its ``sys.prefix``.
        folders: Folders in which it finds packages.
        sees_us: True if it can open the files of this tfguard.
    """

    version: tuple[int, ...]
    prefix: Path
    folders: tuple[str, ...]
    sees_us: bool

    @property
    def has_guard(self) -> bool:
        """True if the environment has a tfguard that loads itself into its kernels."""
        installed = self.version_of("jupyter-tfguard") is not None
        return installed and (self.prefix / STARTUP_FILE).is_file()

    @property
    def is_too_old(self) -> bool:
        """True if its Python is too old for the guard."""
        return self.version < OLDEST_PYTHON

    def version_of(self, *distributions: str) -> str | None:
        """Version of the first of these packages that is installed. Source: the metadata on disk."""
        for name in distributions:
            for found in metadata.distributions(name=name, path=list(self.folders)):
                return str(found.version)
        return None

    def versions(self) -> dict[str, str | None]:
        """Versions of Python, ipykernel and TensorFlow; None if not installed."""
        return {
            "python": ".".join(map(str, self.version)),
            "ipykernel": self.version_of("ipykernel"),
            "tensorflow": self.version_of(*_TENSORFLOWS),
        }


def ask(
    spec: FoundSpec, our_file: Path, *, seconds: float, environ: Mapping[str, str] = os.environ
) -> Interpreter:
    """Run a kernel's interpreter to find the folders of its packages.

    Args:
        spec: The kernel.
        our_file: A file of this tfguard, to check that the interpreter can open it.
        seconds: Timeout.
        environ: The environment to which the kernel's variables are added.

    Raises:
        KernelSpecUnusable: It is not an ipykernel, does not start, or takes too long.
    """
    command = python_command(spec.argv)
    if command is None:
        raise KernelSpecUnusable(
            f"Kernel {spec.name} is not started by `python -m ipykernel_launcher` but by "
            f"`{' '.join(spec.argv)[:200]}`, so this command cannot load the guard into it."
        )
    environment = {**environ, **spec.environ}
    try:
        done = subprocess.run(
            [*command, "-I", "-c", _SCRIPT, str(our_file)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=True,
        )
        version, prefix, folders, sees_us = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, TypeError) as bad:
        printed = (getattr(bad, "stderr", None) or b"").decode("utf-8", "replace").strip()
        reason = printed.splitlines()[-1] if printed else str(bad)
        if isinstance(bad, subprocess.TimeoutExpired):
            reason = f"it did not answer within {seconds:.0f} s"
        raise KernelSpecUnusable(
            f"The interpreter of kernel {spec.name}, {command[0]}, failed: {reason[:200]}"
        ) from bad
    more = [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return Interpreter(tuple(version), Path(prefix), (*more, *folders), bool(sees_us))
