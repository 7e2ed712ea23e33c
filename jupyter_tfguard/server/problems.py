"""Parts of tfguard that do not work in this server, each with a fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import FolderUnusable
from ..places import DISABLE_VARIABLE, FAST_FIX, disabled_by_environment
from ..postmortem.handle import RESTART_JUPYTER
from ..record.unsaved import fix_of, reason_of
from ..shield import note_problem
from .notify import plain

DISABLED = "tfguard is turned off"
UPGRADED = "The files of jupyter-tfguard on disk are not those that this server runs"
_LIMIT = 20


def problems(
    noted: list[dict[str, Any]],
    *,
    active: bool,
    is_upgraded: bool = False,
    unsaved: Sequence[OSError | FolderUnusable] = (),
    slow: str | None = None,
) -> list[dict[str, Any]]:
    """Current problems, newest first, as ``{"what", "fix", "noted_at"}``: Unix seconds; None for a present condition.

    Args:
        noted: From :func:`~..shield.read_problems`.
        active: False if tfguard is turned off.
        is_upgraded: True if the files on disk have changed since the server started.
        unsaved: Why reports could not be saved, one error for each report.
        slow: From :func:`~..places.slow_recordings`.
    """
    found: list[dict[str, Any]] = []
    listed: set[tuple[str, str]] = set()
    if not active:
        fix = "Set c.TfGuard.enabled = True in the configuration, or remove the option."
        if disabled_by_environment():
            fix = f"Unset {DISABLE_VARIABLE}, then start Jupyter again."
        found.append({"what": DISABLED, "fix": fix, "noted_at": None})
    if is_upgraded:
        found.append({"what": UPGRADED, "fix": RESTART_JUPYTER, "noted_at": None})
    if slow:
        found.append({"what": slow, "fix": FAST_FIX, "noted_at": None})
    if unsaved:
        count = "A crash report is" if len(unsaved) == 1 else f"{len(unsaved)} crash reports are"
        what = f"{count} only in the memory of this server: {reason_of(unsaved[0])}"
        found.append({"what": what, "fix": fix_of(unsaved[0]) or "", "noted_at": None})
    for entry in reversed(noted[-_LIMIT:]):
        what = f"{entry.get('place')}: {entry.get('what')}"
        what = what[:1].upper() + what[1:]
        fix = str(entry.get("fix") or "")
        if (what, fix) not in listed:  # each process notes it once
            listed.add((what, fix))
            found.append({"what": what, "fix": fix, "noted_at": entry["time"]})
    return found


def note_start_failure(bad: BaseException) -> str:
    """Note why the extension could not start; returns the sentence for the server's log."""
    fix = "Kernels run, but are not tracked. `jupyter tfguard doctor` shows more."
    note_problem("starting the server extension", bad, fix=fix)
    return f"tfguard could not start ({plain(f'{type(bad).__name__}: {bad}')}). {fix}"
