"""The machine and the Python environment to check: the current one, or one that a test has created.

A check is ``check(machine: Environment) -> CheckResult | None``, None if it does not apply (no TensorFlow, no GPU). All
its facts come from here, so that tests can simulate every problem.
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
from ..collectors.machine import is_container
from ..collectors.packages import Package, find_package, library_owners
from ..collectors.versions import InstalledTensorFlow, installed_tensorflow
from .build import PROVIDERS, Build, build_of_installed

VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
DRIVER_LIBRARY = "libcuda.so.1"  # the library that CUDA programs load
# The command for Ubuntu and its derivatives; other systems use another package name.
INSTALL_DRIVER = "sudo ubuntu-drivers install && sudo reboot"


@dataclass(frozen=True)
class Environment:
    """Access to the facts. Expensive facts are read once.

    Attributes:
        root: Folder that contains ``proc``, ``sys``, ``dev``, ``etc`` and ``usr``.
        environ: The environment variables that a kernel started from here would have.
        import_folders: Folders searched for packages, in the order of ``sys.path``.
        python: The interpreter, as written in commands.
        python_version: Result of ``platform.python_version``.
        prefix: ``sys.prefix`` of the interpreter.
        system: ``sys.platform``.
        processor: Result of ``platform.machine``: ``x86_64``, ``aarch64``.
        driver_limit_seconds: Timeout for the driver. On an idle machine with several GPUs the driver takes seconds to
            start.
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
        """The environment of this process."""
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
        """The path of a file of the machine, from its usual absolute path: ``/proc/meminfo``."""
        return self.root / absolute.lstrip("/")

    def pip(self, command: str, *words: str) -> str:
        """A command of this interpreter's pip, or of uv if the environment has no pip. Words are quoted for a shell."""
        quoted = [f'"{word}"' if set(word) & set("<>[]!~*; ") else word for word in words]
        if find_package("pip", self.import_folders) is None:
            accepted = [word for word in quoted if word != "-y"]  # uv never prompts
            return f"uv pip {command} --python {self.python} {' '.join(accepted)}"
        return f"{self.python} -m pip {command} {' '.join(quoted)}"

    @cached_property
    def tensorflow(self) -> InstalledTensorFlow | None:
        """The TensorFlow that an import would find; None if there is none."""
        return installed_tensorflow(self.import_folders, PROVIDERS)

    @cached_property
    def build(self) -> Build | None:
        """The build of that TensorFlow; None without TensorFlow, or if its package has no version."""
        return None if self.tensorflow is None else build_of_installed(self.tensorflow)

    @cached_property
    def library_owners(self) -> dict[Path, list[Package]]:
        """The packages that installed each shared library."""
        return library_owners(self.import_folders)

    @cached_property
    def nvidia(self) -> NvidiaHardware:
        """NVIDIA GPUs as the OS kernel shows them."""
        return nvidia_hardware(self.root)

    @cached_property
    def driver(self) -> DriverAnswer:
        """The answer of NVIDIA's driver, queried in a separate process."""
        return ask_driver(self.environ, self.driver_limit_seconds)

    @property
    def gpu_build(self) -> Build | None:
        """The build, if it uses CUDA and there is an NVIDIA GPU that it may use; else None."""
        if self.build is None or not self.build.uses_cuda or self.system != "linux":
            return None
        may_use = self.nvidia.is_there and not self.gpu_withheld and not self.gpus_hidden
        return self.build if may_use else None

    @property
    def gpus_hidden(self) -> bool:
        """Whether ``CUDA_VISIBLE_DEVICES`` hides all GPUs: it is empty, or its first entry is not a GPU."""
        visible = self.environ.get(VISIBLE_VARIABLE)
        return visible is not None and visible.split(",")[0].strip() in ("", "-1", "NoDevFiles")

    @property
    def gpu_withheld(self) -> bool:
        """Whether this container has no access to the machine's GPU."""
        return self.in_container and not (self.nvidia.is_wsl or self.nvidia.device_files)

    @property
    def in_container(self) -> bool:
        """Whether this is a container, as far as can be detected."""
        return is_container(self.environ, self.root)
