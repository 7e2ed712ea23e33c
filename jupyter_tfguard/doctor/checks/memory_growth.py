"""Will TensorFlow take GPU memory as it needs it. TensorFlow itself is never imported here."""

from __future__ import annotations

import importlib.metadata
import os

from ...config import load_settings
from ...places import GROWTH_MARKER_VARIABLE, GROWTH_VARIABLE
from ..check import CheckResult, Status

NAME = "GPU memory growth"
_DISTRIBUTIONS = (
    "tensorflow",
    "tensorflow-cpu",
    "tf-nightly",
    "tensorflow-intel",
    "tensorflow-macos",
)


def check() -> CheckResult:
    """The variable as this environment has it, and what a kernel start will make of it."""
    version = _tensorflow_version()
    if version is None:
        return CheckResult(NAME, Status.OK, "no TensorFlow is installed in this environment")
    value = os.environ.get(GROWTH_VARIABLE)
    if value is not None and GROWTH_MARKER_VARIABLE not in os.environ:
        if value.strip().lower() == "true":
            return CheckResult(NAME, Status.OK, f"{GROWTH_VARIABLE}={value} is set by you")
        text = f"{GROWTH_VARIABLE}={value} is set by you, and wins: TensorFlow may take nearly all GPU memory at once"
        return CheckResult(NAME, Status.WARNING, text, f"unset {GROWTH_VARIABLE}")
    if not load_settings().set_memory_growth:
        return CheckResult(NAME, Status.WARNING, "TfGuard.set_memory_growth is switched off")
    return CheckResult(NAME, Status.OK, f"set at kernel start, before {version} starts the GPU")


def _tensorflow_version() -> str | None:
    for name in _DISTRIBUTIONS:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
