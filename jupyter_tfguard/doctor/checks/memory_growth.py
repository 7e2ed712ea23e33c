"""Will TensorFlow take GPU memory as it needs it: the variables that decide, and where they come from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ... import growth_words as words
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


def _settings(machine: Environment, names: Collection[str]) -> list[_Setting]:
    """Which of these variables are set, here and by the kernels of this machine."""
    here = [_Setting(name, machine.environ[name]) for name in names if name in machine.environ]
    by_kernels = [
        _Setting(name, spec.environ[name], spec)
        for spec in kernel_specs()
        for name in names
        if name in spec.environ
    ]
    return here + by_kernels


def check(machine: Environment) -> list[CheckResult] | None:
    """Growth first; then what else of the table is set, each value for itself where it does not do what it says."""
    if machine.tensorflow is None:
        return None
    rows = {row["name"]: row for row in table("gpu_memory_variables")["variable"]}
    found = _settings(machine, rows)
    # One that the guard has set, for this process or for the server it was started by, is no choice of the user's.
    ours = GROWTH_MARKER_VARIABLE in machine.environ
    growth = [s for s in found if s.name == GROWTH_VARIABLE and not (ours and s.spec is None)]
    others = [s for s in found if s.name != GROWTH_VARIABLE]
    results = [_growth(setting) for setting in growth]
    if not any(setting.spec is None for setting in growth):
        results.insert(0, _by_guard())
    return results + _cap(others) + _rest(others, rows)


def _by_guard() -> CheckResult:
    if load_settings().set_memory_growth:
        return CheckResult(NAME, Status.OK, f"{words.ON}: {words.AT_START}")
    text = f"{words.OFF_BY_OPTION}: {words.AT_ONCE}"
    return CheckResult(NAME, Status.WARNING, text, f"export {GROWTH_VARIABLE}=true")


def _growth(setting: _Setting) -> CheckResult:
    where = f", set for kernel {setting.spec.name}," if setting.spec is not None else ""
    if setting.value == "true":
        return CheckResult(NAME, Status.OK, f"{words.ON}: {setting.text}, is yours")
    if setting.value == "false":
        text = words.off_by_variable(where)
    else:
        text = words.not_understood(setting.value, where)
    return CheckResult(NAME, Status.WARNING, f"{text}: {words.AT_ONCE}", setting.fix)


def _cap(others: list[_Setting]) -> list[CheckResult]:
    """The cap of the option, and whether the allocator keeps to it."""
    limit_mib = load_settings().gpu_memory_limit_mib
    if limit_mib is None:
        return []
    text = words.capped(limit_mib * 1024 * 1024)
    for setting in others:
        if (setting.name, setting.value) == (words.ALLOCATOR_VARIABLE, words.ASYNC_ALLOCATOR):
            told = f"{text}; {setting.text}: {words.ASYNC_NO_CAP}"
            return [CheckResult(NAME, Status.WARNING, told, setting.fix)]
    return [CheckResult(NAME, Status.OK, text)]


def _rest(found: list[_Setting], rows: dict[str, dict[str, Any]]) -> list[CheckResult]:
    results, plain = [], []
    for setting in found:
        row = rows[setting.name]
        if row["reader"] != "tensorflow":
            plain.append(f"{setting.text}: read by {row['reader']}, not by TensorFlow")
        elif "values" in row and setting.value not in row["values"]:
            known = ", ".join(row["values"])
            text = f"{setting.text} is ignored: TensorFlow knows {known}"
            results.append(CheckResult(_OTHERS, Status.WARNING, text, setting.fix))
        elif setting.value == words.ASYNC_ALLOCATOR:
            text = f"{setting.text}: {words.ASYNC_POOL}; {words.ASYNC_NEEDS}"
            results.append(CheckResult(_OTHERS, Status.OK, text))
        elif setting.value in row.get("debug", ()):
            text = f"{setting.text} is for debugging, and slow"
            results.append(CheckResult(_OTHERS, Status.WARNING, text, setting.fix))
        else:
            plain.append(setting.text)
    if plain:
        results.append(CheckResult(_OTHERS, Status.OK, "; ".join(plain)))
    return results
