"""One made environment of TensorFlow for the doctor, and what the most of them begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .made_machine import MadeMachine

NO_GPU = ("gpu_driver", "gpu_libraries", "gpu_architecture")


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


def healthy(
    m: MadeMachine,
    standin: Path,
    release: str = "2.21.0",
    driver: str = "550.54.15",
    cards: Sequence[str] = ("8.0",),
    fault: str | None = None,
    **nvidia: str,
) -> None:
    """A machine with a GPU and everything that a release needs for it."""
    on_gpu(m, standin, driver, cards, fault)
    m.tensorflow(release)
    m.nvidia_packages(release, **nvidia)


def on_gpu(
    m: MadeMachine,
    standin: Path,
    driver: str = "550.54.15",
    cards: Sequence[str] = ("8.0",),
    fault: str | None = None,
    **more: Any,
) -> None:
    """A machine with a GPU and NVIDIA's driver."""
    m.gpu()
    m.driver(driver, **more)
    m.standin(standin, fault, cards)


def other_version(m: MadeMachine, name: str, version: str | None) -> None:
    m.remove(name)
    if version is not None:
        m.package(name, version)
