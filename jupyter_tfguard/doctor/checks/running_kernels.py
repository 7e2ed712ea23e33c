"""Has every kernel that runs now the guard, and if not, why not."""

from __future__ import annotations

import time
from pathlib import Path

from ...config import load_settings
from ...errors import KernelSpecUnusable, SettingsUnreadable
from ...kernelspecs.command import (
    STARTUP_FILE,
    config_file_of,
    enable_command,
    is_wrapped,
    python_command,
)
from ...kernelspecs.found import FoundSpec, kernel_spec
from ...places import DISABLE_VARIABLE, disabled_by_environment
from ..check import CheckResult, Status
from ..environment import Environment
from ..running import RunningKernel, running_kernels

NAME = "running kernels"
_STARTING_SECONDS = 15.0
_CLOCK_SECONDS = 0.1  # start times are counted in ticks, file times by another clock
_TOLD_COUNT = 5


def check(machine: Environment) -> list[CheckResult] | None:
    """Compares the process table with the recordings; nothing is asked of the kernels."""
    if machine.system != "linux" or not _wanted():
        return None
    grown = [k for k in running_kernels(machine) if time.time() - k.started > _STARTING_SECONDS]
    bare = [kernel for kernel in grown if not kernel.is_recorded]
    if not grown:
        return None
    if not bare:
        count = "1, with the guard" if len(grown) == 1 else f"{len(grown)}, each with the guard"
        return [CheckResult(NAME, Status.OK, count)]
    results = [_result(machine, kernel) for kernel in bare[:_TOLD_COUNT]]
    if len(bare) > _TOLD_COUNT:
        text = f"{len(bare) - _TOLD_COUNT} more have no guard"
        results.append(CheckResult(NAME, Status.WARNING, text))
    return results


def _wanted() -> bool:
    try:
        return load_settings().active
    except SettingsUnreadable:
        return True


def _result(machine: Environment, kernel: RunningKernel) -> CheckResult:
    why, fix = _why(machine, kernel)
    return CheckResult(NAME, Status.WARNING, f"{kernel.title} has no guard: {why}", fix)


def _why(machine: Environment, kernel: RunningKernel) -> tuple[str, str | None]:
    """Why a kernel has no recording, as far as files tell, and what to do."""
    if disabled_by_environment(kernel.environ):
        return f"{DISABLE_VARIABLE} is set in its environment", f"unset {DISABLE_VARIABLE}"
    spec, given = _spec_of(kernel), kernel.config_file
    enable = enable_command(spec.name, spec.argv) if spec is not None else None
    fix = enable or f"{kernel.argv[0]} -m pip install jupyter-tfguard"
    if given is not None and not given.is_file():
        return f"it was given one that is gone ({given})", fix
    prefix = kernel.prefix
    if given is not None or prefix is None:
        return "`%load_ext tfguard` in it loads it, or says why not", None
    try:
        installed = (prefix / STARTUP_FILE).stat().st_ctime
    except OSError:
        if spec is not None and config_file_of(spec.argv) is not None:
            text = "it is older than `jupyter tfguard enable`. Shut it down, then start it again"
            return text, None
        return f"its environment {prefix} has none", fix
    if installed > kernel.started + _CLOCK_SECONDS:
        return "it was started before the guard was installed. Restart it", None
    return "`%load_ext tfguard` in it loads it, or says why not", None


def _spec_of(kernel: RunningKernel) -> FoundSpec | None:
    """The specification that it was started by; None when another Jupyter started it, which has others by these names."""
    try:
        spec = kernel_spec(kernel.kernel_name or "")
    except KernelSpecUnusable:
        return None
    python = (python_command(spec.argv) or [""])[0]
    same = Path(python).parent == Path(kernel.argv[0]).parent
    return spec if same or is_wrapped(spec.argv) else None
