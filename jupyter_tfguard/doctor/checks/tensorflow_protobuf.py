"""Is the installed protobuf one that TensorFlow's generated code runs with."""

from __future__ import annotations

from packaging.version import Version

from ..check import CheckResult, Status
from ..environment import Environment
from ..requirements import Fit, Need, highest_major, judged, need

NAME = "protobuf"


def check(machine: Environment) -> CheckResult | None:
    """By TensorFlow's own range.

    Generated code never runs with an older protobuf; with the next major version it runs by that project's promise, with
    later ones not. Source: https://protobuf.dev/support/cross-version-runtime-guarantee
    """
    wanted = need(machine, "protobuf")
    if machine.build is None or wanted is None:
        return None
    fix = machine.pip("install", wanted.wanted)
    if wanted.found is None:
        text = f"not installed; {machine.build} asks for {wanted.asked}"
        return CheckResult(NAME, Status.PROBLEM, text, fix)
    said = f"{wanted.found.version}; {machine.build} asks for {wanted.asked}"
    return judged(NAME, wanted, said, fix, _problem(wanted))


def _problem(wanted: Need) -> str | None:
    if wanted.fit is Fit.BELOW:
        return "code that was generated for a newer protobuf does not run with it"
    if wanted.fit not in (Fit.FITS, Fit.UNKNOWN) and _too_far(wanted):
        return "code that was generated for that does not run with a protobuf so much newer"
    return None


def _too_far(wanted: Need) -> bool:
    highest = highest_major(wanted.range)
    if highest is None or wanted.found is None:
        return False
    later = Version(wanted.found.version or "").major - highest
    # 4 broke with code that was generated for 3 before 3.19: "Descriptors cannot be created directly".
    return later > 1 or (later == 1 and highest == 3)
