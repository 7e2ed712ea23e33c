"""Flags of XLA in the environment: one that TensorFlow does not know ends the kernel with a fatal line.

Source: parse_flags_from_env.cc; seen with TensorFlow 2.21: ``XLA_FLAGS`` at the first compilation, ``TF_XLA_FLAGS`` at the
import.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Sequence
from pathlib import Path

from ..check import CheckResult, Status
from ..environment import Environment
from ..variables import Setting, settings

NAME = "XLA flags"
_WHEN = {
    "TF_XLA_FLAGS": "when TensorFlow is imported",
    "XLA_FLAGS": "at the first compilation",
}
_FOREIGN = {"XLA_FLAGS": "--tf_xla_"}  # they belong into the other variable


def check(machine: Environment) -> list[CheckResult] | None:
    """Each flag that is set is looked for among the names in TensorFlow's libraries."""
    found = settings(machine, _WHEN)
    if machine.tensorflow is None or not found:
        return None
    libraries = machine.tensorflow.libraries
    bad = [problem for setting in found for problem in _problems(setting, libraries)]
    if bad:
        return bad
    return [CheckResult(NAME, Status.OK, "; ".join(setting.text for setting in found))]


def _problems(setting: Setting, libraries: Sequence[Path]) -> list[CheckResult]:
    words = setting.value.split()
    if not words:
        return []
    if not words[0].startswith("-"):
        if Path(words[0]).is_file():
            return []
        return [_fatal(setting, f"{words[0]!r} is taken for the name of a file, and there is none")]
    results = []
    for word in words:
        name = word.lstrip("-").partition("=")[0]
        foreign = _FOREIGN.get(setting.name)
        if foreign is not None and word.startswith(foreign):
            results.append(_fatal(setting, f"{word} belongs into TF_XLA_FLAGS"))
        elif libraries and not any(_names(library, name) for library in libraries):
            results.append(_fatal(setting, f"this TensorFlow does not know --{name}"))
    return results


def _fatal(setting: Setting, why: str) -> CheckResult:
    text = f"{setting.text}: {why}. The kernel is ended by a fatal line {_WHEN[setting.name]}."
    return CheckResult(NAME, Status.PROBLEM, text, setting.fix)


def _names(library: Path, flag: str) -> bool:
    """True when the flag's name stands in the library as a string, or nobody can tell."""
    with (
        contextlib.suppress(OSError, ValueError),
        library.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(flag.encode() + b"\0") >= 0
    return True
