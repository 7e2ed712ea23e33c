"""One made environment of TensorFlow for the doctor, and what the most of them begin with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .made_machine import MadeMachine

SOURCE = Path(__file__).parent / "nvml" / "nvml_standin.c"
NO_GPU = ("gpu_driver", "gpu_cuda", "gpu_cudnn", "gpu_architecture")


@dataclass(frozen=True)
class Case:
    """One environment.

    Attributes:
        make: Puts it onto an empty machine; its second argument is the folder of the driver's stand-in.
        verdicts: Status of each check that is not ok, by the name of its file without ``tensorflow_``.
        says: Words that must be read, in texts or commands.
        silent: Checks that must say nothing at all.
        given: What the doctor's Environment has otherwise.
    """

    name: str
    make: Callable[[MadeMachine, Path], None]
    verdicts: dict[str, str]
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    given: dict[str, Any] | None = None

    def __str__(self) -> str:
        return self.name


def build_standin(folder: Path) -> Path | None:
    """Compile the stand-in for the driver's library into a folder, which comes back; None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return folder


def healthy(
    m: MadeMachine,
    standin: Path,
    release: str = "2.21.0",
    driver: str = "550.54.15",
    cards: str = "8.0",
    behaviour: str = "fine",
    **nvidia: str,
) -> None:
    """A machine with a GPU and everything that a release needs for it."""
    on_gpu(m, standin, driver, cards, behaviour)
    m.tensorflow(release)
    m.nvidia_packages(release, **nvidia)


def on_gpu(
    m: MadeMachine,
    standin: Path,
    driver: str = "550.54.15",
    cards: str = "8.0",
    behaviour: str = "fine",
    **more: Any,
) -> None:
    """A machine with a GPU and NVIDIA's driver."""
    m.gpu()
    m.driver(driver, **more)
    m.standin(standin, behaviour, cards)


def other_version(m: MadeMachine, name: str, version: str | None) -> None:
    m.remove(name)
    if version is not None:
        m.package(name, version)
