"""Finds kernels of other environments without the guard. Their packages are read from disk, not imported."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...errors import KernelSpecUnusable
from ...kernelspecs.command import (
    CONFIG_FILE,
    config_file_of,
    enable_command,
    is_wrapped,
    python_command,
)
from ...kernelspecs.found import FoundSpec, kernel_specs
from ...kernelspecs.interpreter import Interpreter, ask
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "kernels of other environments"
_ASK_SECONDS = 3.0
_AT_ONCE = 8


def check(machine: Environment) -> list[CheckResult] | None:
    """All kernels that Jupyter finds here and that run in another environment."""
    specs = [spec for spec in kernel_specs() if _is_of_interest(spec, machine)]
    if not specs:
        return None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda spec: _ask(spec, machine), specs))
    others = [
        (spec, answer)
        for spec, answer in zip(specs, answers, strict=True)
        if isinstance(answer, str) or answer.prefix != machine.prefix
    ]
    results = [result for spec, answer in others if (result := _trouble(spec, answer)) is not None]
    if others and not results:
        names = ", ".join(spec.name for spec, _ in others)
        return [CheckResult(NAME, Status.OK, f"{names} have the guard, or no TensorFlow")]
    return results or None


def _is_of_interest(spec: FoundSpec, machine: Environment) -> bool:
    command = python_command(spec.argv)
    # The doctor does not run wrapped commands (conda run, docker, ssh); `enable` does.
    return command is not None and command[0] != machine.python and not is_wrapped(spec.argv)


def _ask(spec: FoundSpec, machine: Environment) -> Interpreter | str:
    try:
        return ask(spec, CONFIG_FILE, seconds=_ASK_SECONDS, environ=machine.environ)
    except KernelSpecUnusable as bad:
        return str(bad)


def _trouble(spec: FoundSpec, answer: Interpreter | str) -> CheckResult | None:
    python = (python_command(spec.argv) or [""])[0]
    if isinstance(answer, str):
        gone = not Path(python).exists()
        fix = f"jupyter kernelspec remove {spec.name}" if gone else None
        return CheckResult(NAME, Status.WARNING if gone else Status.UNKNOWN, answer, fix)
    given = config_file_of(spec.argv)
    if given is not None:
        if not given.is_file():
            text = f"{spec.name} loads a guard that no longer exists ({given}), so it starts without one"
            return CheckResult(NAME, Status.WARNING, text, enable_command(spec.name, spec.argv))
        return None
    version = answer.versions()["tensorflow"]
    if answer.has_guard or version is None or answer.is_too_old:
        return None
    text = f"{spec.name} (TensorFlow {version}) has no guard: reports of its crashes show only what the server sees"
    enable = enable_command(spec.name, spec.argv) if answer.sees_us else None
    return CheckResult(
        NAME, Status.WARNING, text, enable or f"{python} -m pip install jupyter-tfguard"
    )
