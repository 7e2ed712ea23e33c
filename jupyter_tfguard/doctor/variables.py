"""Environment variables that a kernel will have, and where each value comes from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..kernelspecs.found import FoundSpec, kernel_specs
from .environment import Environment


@dataclass(frozen=True)
class Setting:
    """One value of a variable.

    Attributes:
        name: Of the variable.
        value: As it is written.
        spec: The kernel whose ``kernel.json`` sets it; None: it is in this environment, and so in all kernels started
            from here that set no other.
    """

    name: str
    value: str
    spec: FoundSpec | None = None

    @property
    def text(self) -> str:
        """``NAME=value``, and where from."""
        told = f"{self.name}={self.value[:80]}"
        return f"{told}, set for kernel {self.spec.name}" if self.spec is not None else told

    @property
    def fix(self) -> str:
        """How it is taken away."""
        return (
            f"unset {self.name}" if self.spec is None else f'"{self.spec.file}": remove {self.name}'
        )


def settings(machine: Environment, names: Collection[str]) -> list[Setting]:
    """What is set of these variables, here and by the kernels of this machine."""
    here = [Setting(name, machine.environ[name]) for name in names if name in machine.environ]
    by_kernels = [
        Setting(name, spec.environ[name], spec)
        for spec in kernel_specs()
        for name in names
        if name in spec.environ
    ]
    return here + by_kernels
