"""The machine and the Python environment that the checks look at: this one, or one that a test has made.

A check is ``check(machine: Environment) -> CheckResult | None``, None where it has no subject (no TensorFlow, no GPU). It
takes all its facts from here, so that it can be shown every kind of trouble without having it.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..collectors.driver import DriverAnswer, NvidiaHardware, ask_driver, nvidia_hardware
from ..collectors.packages import Package, find_package, library_owners
from ..collectors.versions import InstalledTensorFlow, installed_tensorflow
from .build import PROVIDERS, Build, build_of_installed

VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
DRIVER_LIBRARY = "libcuda.so.1"  # what programs that use CUDA open
# The command of Ubuntu and its relatives; other systems have a package of another name.
INSTALL_DRIVER = "sudo ubuntu-drivers install && sudo reboot"


@dataclass(frozen=True)
class Environment:
    """Where the facts lie; those that cost something are read once.

    Attributes:
        root: Folder below which ``proc``, ``sys``, ``dev``, ``etc`` and ``usr`` lie.
        environ: The environment variables that a kernel started from here would have.
        import_folders: Where packages are looked for, in the order of ``sys.path``.
        python: The interpreter, as its commands are written.
        python_version: As ``platform.python_version`` gives it.
        prefix: ``sys.prefix`` of the interpreter.
        system: ``sys.platform``.
        processor: As ``platform.machine`` gives it: ``x86_64``, ``aarch64``.
        driver_limit_seconds: How long the driver may take to answer; that of an idle machine with several GPUs takes
            seconds to wake up.
    """

    root: Path
    environ: Mapping[str, str]
    import_folders: tuple[Path, ...]
    python: str
    python_version: str
    prefix: Path
    system: str
    processor: str
    driver_limit_seconds: float = 10.0

    @classmethod
    def here(cls) -> Environment:
        """The one this process runs in."""
        return cls(
            root=Path("/"),
            environ=dict(os.environ),
            import_folders=tuple(Path(folder) for folder in sys.path if os.path.isdir(folder)),
            python=sys.executable,
            python_version=platform.python_version(),
            prefix=Path(sys.prefix),
            system=sys.platform,
            processor=platform.machine(),
        )

    def path(self, absolute: str) -> Path:
        """Where a file of the machine lies, by its usual absolute path: ``/proc/meminfo``."""
        return self.root / absolute.lstrip("/")

    def pip(self, command: str, *words: str) -> str:
        """A command of this interpreter's pip, or of uv, whose environments have none; packages quoted for a shell."""
        quoted = [f'"{word}"' if set(word) & set("<>[]!~*; ") else word for word in words]
        if find_package("pip", self.import_folders) is None:
            asked = [word for word in quoted if word != "-y"]  # uv never asks back
            return f"uv pip {command} --python {self.python} {' '.join(asked)}"
        return f"{self.python} -m pip {command} {' '.join(quoted)}"

    @cached_property
    def tensorflow(self) -> InstalledTensorFlow | None:
        """The TensorFlow that an import would find; None when there is none."""
        return installed_tensorflow(self.import_folders, PROVIDERS)

    @cached_property
    def build(self) -> Build | None:
        """What that TensorFlow was built for; None without TensorFlow, or when its package has no version."""
        return None if self.tensorflow is None else build_of_installed(self.tensorflow)

    @cached_property
    def library_owners(self) -> dict[Path, list[Package]]:
        """Which packages put each shared library where it lies."""
        return library_owners(self.import_folders)

    @cached_property
    def nvidia(self) -> NvidiaHardware:
        """NVIDIA's GPUs, as the OS kernel shows them."""
        return nvidia_hardware(self.root)

    @cached_property
    def driver(self) -> DriverAnswer:
        """What NVIDIA's driver says when it is asked, in a process of its own."""
        return ask_driver(self.environ, self.driver_limit_seconds)

    @property
    def gpu_build(self) -> Build | None:
        """The build, where it uses CUDA and there is an NVIDIA GPU that it may use; else None."""
        if self.build is None or not self.build.uses_cuda or self.system != "linux":
            return None
        may_use = self.nvidia.is_there and not self.gpu_withheld and not self.gpus_hidden
        return self.build if may_use else None

    @property
    def gpus_hidden(self) -> bool:
        """Whether ``CUDA_VISIBLE_DEVICES`` lets no GPU be seen: empty, or a first entry that is no GPU."""
        visible = self.environ.get(VISIBLE_VARIABLE)
        return visible is not None and visible.split(",")[0].strip() in ("", "-1", "NoDevFiles")

    @property
    def gpu_withheld(self) -> bool:
        """Whether the machine's GPU was not handed to this container."""
        return self.in_container and not (self.nvidia.is_wsl or self.nvidia.device_files)

    @property
    def in_container(self) -> bool:
        """Whether this is a container, as far as containers say so."""
        marks = ("/.dockerenv", "/run/.containerenv", "/.singularity.d")
        told = "KUBERNETES_SERVICE_HOST" in self.environ or "container" in self.environ
        return told or any(self.path(mark).exists() for mark in marks)
