"""What of tfguard does not work in this server, each with what to do about it."""

from __future__ import annotations

from typing import Any

from ..places import DISABLE_VARIABLE, disabled_by_environment
from ..shield import note_problem
from .reporter import plain

DISABLED = "tfguard is switched off"
_LIMIT = 20


def problems(
    noted: list[dict[str, Any]], *, active: bool, slow: str | None
) -> list[dict[str, Any]]:
    """What does not work, newest first, as ``{"what", "fix"}``.

    Args:
        noted: As :func:`~..shield.read_problems` gives them.
        active: False where tfguard is switched off.
        slow: What is said of a disk that recordings cannot be copied to in time; None where they can.
    """
    found: list[dict[str, Any]] = []
    if not active:
        fix = "c.TfGuard.enabled = True in the configuration, or remove the option."
        if disabled_by_environment():
            fix = f"Start Jupyter without {DISABLE_VARIABLE}."
        found.append({"what": DISABLED, "fix": fix})
    if slow:
        found.append({"what": slow, "fix": "Set TFGUARD_DIR to a folder on a local disk."})
    for entry in reversed(noted[-_LIMIT:]):
        what = f"{entry.get('place')}: {entry.get('what')}"
        told = {"what": what, "fix": str(entry.get("fix") or "")}
        if told not in found:  # each process writes it down once
            found.append(told)
    return found


def note_start_failure(bad: BaseException) -> str:
    """Write down why the extension could not start, and the sentence for the server's log."""
    fix = "Kernels run as without it; `jupyter tfguard doctor` tells more."
    note_problem("starting the server extension", bad, fix=fix)
    return f"tfguard could not start ({plain(f'{type(bad).__name__}: {bad}')}). {fix}"
