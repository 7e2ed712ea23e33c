"""Checks whether TensorFlow allocates GPU memory on demand: the variables that decide, and where they are set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ... import growth_texts as words
from ...config import load_settings
from ...diagnosis.catalog import table
from ...kernelspecs.found import FoundSpec, kernel_specs
from ...places import GROWTH_MARKER_VARIABLE, GROWTH_VARIABLE
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "GPU memory growth"
_OTHERS = "GPU memory variables"


@dataclass(frozen=True)
class _Setting:
    """One value of a variable.

    Attributes:
        name: Name of the variable.
        value: Its text.
        spec: The kernel whose ``kernel.json`` sets it. None: it is set in this environment, and so in all kernels
            started from here that do not override it.
    """

    name: str
    value: str
    spec: FoundSpec | None = None

    @property
    def text(self) -> str:
        """``NAME=value``, and where it is set."""
        assignment = f"{self.name}={self.value[:80]}"
        return (
            f"{assignment}, set for kernel {self.spec.name}"
            if self.spec is not None
            else assignment
        )

    @property
    def fix(self) -> str:
        """How to remove it."""
        return (
            f"unset {self.name}" if self.spec is None else f'"{self.spec.file}": remove {self.name}'
        )


def _settings(machine: Environment, names: Collection[str]) -> list[_Setting]:
    """The variables that are set, in this environment and by the kernels of this machine."""
    here = [_Setting(name, machine.environ[name]) for name in names if name in machine.environ]
    by_kernels = [
        _Setting(name, spec.environ[name], spec)
        for spec in kernel_specs()
        for name in names
        if name in spec.environ
    ]
    return here + by_kernels


def check(machine: Environment) -> list[CheckResult] | None:
    """Memory growth first, then other variables of the table that are ignored, slow or in conflict."""
    if machine.tensorflow is None:
        return None
    rows = {row["name"]: row for row in table("gpu_memory_variables")["variable"]}
    found = _settings(machine, rows)
    # A variable set by the guard, for this process or for its parent server, is not the user's choice.
    ours = GROWTH_MARKER_VARIABLE in machine.environ
    growth = [s for s in found if s.name == GROWTH_VARIABLE and not (ours and s.spec is None)]
    results = [_growth(setting) for setting in growth]
    if not any(setting.spec is None for setting in growth):
        results.insert(0, _by_guard())
    others = [_other(s, rows[s.name]) for s in found if s.name != GROWTH_VARIABLE]
    return results + [result for result in others if result is not None]


def _by_guard() -> CheckResult:
    if load_settings().set_memory_growth:
        return CheckResult(NAME, Status.OK, f"{words.ON}: {words.AT_START}")
    text = f"{words.OFF_BY_OPTION}: {words.AT_ONCE}"
    return CheckResult(NAME, Status.WARNING, text, f"export {GROWTH_VARIABLE}=true")


def _growth(setting: _Setting) -> CheckResult:
    where = f", set for kernel {setting.spec.name}," if setting.spec is not None else ""
    if setting.value == "true":
        return CheckResult(NAME, Status.OK, f"{words.ON}: {setting.text}, set by you")
    if setting.value == "false":
        text = words.off_by_variable(where)
    else:
        text = words.not_understood(setting.value, where)
    return CheckResult(NAME, Status.WARNING, f"{text}: {words.AT_ONCE}", setting.fix)


def _other(setting: _Setting, row: dict[str, Any]) -> CheckResult | None:
    limit_mib = load_settings().gpu_memory_limit_mib
    if setting.value == words.ASYNC_ALLOCATOR and limit_mib is not None:
        text = f"{words.capped(limit_mib * 1024 * 1024)}; {setting.text}: {words.ASYNC_NO_CAP}"
    elif setting.value in row.get("debug", ()):
        text = f"{setting.text} is slow and meant for debugging"
    elif row["reader"] == "tensorflow" and setting.value not in row.get("values", [setting.value]):
        text = f"{setting.text} is ignored: TensorFlow accepts {', '.join(row['values'])}"
    else:
        return None
    return CheckResult(_OTHERS, Status.WARNING, text, setting.fix)
