"""The Python environment that a kernel runs in: asked once for its folders, and then read on disk.

Nothing of that environment is imported: its interpreter answers one question in isolated mode.
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
# Isolated mode leaves out the user's own packages, which a kernel outside of a virtual environment has.
_QUESTION = """
import json, os, site, sys
venv = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
own = [] if venv else [site.getusersitepackages()]
print(json.dumps([sys.version_info[:3], sys.prefix, sys.path + own, os.path.isfile(sys.argv[1])]))
"""


@dataclass(frozen=True)
class Interpreter:
    """What runs a kernel.

    Attributes:
        version: Of Python: ``(3, 10, 13)``.
        prefix: Its ``sys.prefix``.
        folders: Where it finds packages.
        sees_us: True when it can open the files of this tfguard.
    """

    version: tuple[int, ...]
    prefix: Path
    folders: tuple[str, ...]
    sees_us: bool

    @property
    def has_guard(self) -> bool:
        """True when a tfguard of its own loads itself into its kernels."""
        installed = self.version_of("jupyter-tfguard") is not None
        return installed and (self.prefix / STARTUP_FILE).is_file()

    @property
    def is_too_old(self) -> bool:
        """True when the guard cannot run in it."""
        return self.version < OLDEST_PYTHON

    def version_of(self, *distributions: str) -> str | None:
        """Version of the first of these that is installed there. Source: the metadata on disk."""
        for name in distributions:
            for found in metadata.distributions(name=name, path=list(self.folders)):
                return str(found.version)
        return None

    def versions(self) -> dict[str, str | None]:
        """Python, ipykernel and TensorFlow; None what is not installed there."""
        return {
            "python": ".".join(map(str, self.version)),
            "ipykernel": self.version_of("ipykernel"),
            "tensorflow": self.version_of(*_TENSORFLOWS),
        }


def ask(
    spec: FoundSpec, our_file: Path, *, seconds: float, environ: Mapping[str, str] = os.environ
) -> Interpreter:
    """Where a kernel's interpreter finds its packages.

    Args:
        spec: The kernel.
        our_file: A file of this tfguard that it is to open.
        seconds: How long it may take.
        environ: The environment that its own variables are added to.

    Raises:
        KernelSpecUnusable: It is no ipykernel, does not start, or takes too long.
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
            [*command, "-I", "-c", _QUESTION, str(our_file)],
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
