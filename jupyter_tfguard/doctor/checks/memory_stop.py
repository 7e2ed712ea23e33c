"""Checks that the stop before memory runs out works at the configured level: its native library must be present."""

from __future__ import annotations

from ...config import load_settings
from ...errors import SourceUnavailable
from ...guard.native import NativeGuard
from ..check import CheckResult, Status
from ..environment import Environment

NAME = "stop before memory runs out"


def check(machine: Environment) -> CheckResult | None:
    """None if the option is off: the library is not needed then."""
    level = load_settings().stop
    if level == "off" or machine.system != "linux":
        return None
    try:
        NativeGuard.load()
    except SourceUnavailable as absent:
        text = f"not possible on this system, so no cell is stopped: {absent}"
        return CheckResult(NAME, Status.WARNING, text)
    return CheckResult(NAME, Status.OK, f"at the level {level}, with the native library")
