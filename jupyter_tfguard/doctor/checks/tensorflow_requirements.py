"""Are the other packages in place that TensorFlow asks for; NumPy, protobuf and Keras have checks of their own."""

from __future__ import annotations

from ..check import CheckResult, Status
from ..environment import Environment
from ..requirements import Fit, Need, needs

NAME = "packages that TensorFlow needs"
_ELSEWHERE = ("numpy", "protobuf", "keras")


def check(machine: Environment) -> CheckResult | None:
    """By TensorFlow's own metadata: missing ones stop the import, others are warned of."""
    found = [n for n in needs(machine) if n.name.lower() not in _ELSEWHERE]
    if machine.build is None or not found:
        return None
    odd = [n for n in found if n.fit is not Fit.FITS]
    if not odd:
        return CheckResult(NAME, Status.OK, f"{len(found)} of {len(found)} are there and fit")
    missing = any(n.fit is Fit.MISSING for n in odd)
    text = f"{machine.build} asks for {', '.join(map(_told, odd))}"
    fix = machine.pip("install", *(n.wanted for n in odd))
    return CheckResult(NAME, Status.PROBLEM if missing else Status.WARNING, text, fix)


def _told(one: Need) -> str:
    here = "missing" if one.found is None else f"here {one.found.version or 'damaged'}"
    return f"{one.wanted} ({here})"
