"""The two lines that the next kernel prints after a crash, once, if no open page has shown it; and whose crash it was."""

from __future__ import annotations

import contextlib
import datetime
import time
from typing import Any

from ..errors import TfGuardError
from ..record.bundle import ANNOUNCED, BundleStore
from ..redact import clean, one_line

# Older crashes are only in the list; a kernel that starts the next morning does not print them.
_RECENT_SECONDS = 3600.0


def announcement(store: BundleStore, kernel_id: str | None, notebook_path: str | None) -> list[str]:
    """Return two lines about the last crash of this kernel or notebook, and mark it as announced; [] if there is none."""
    if kernel_id is None and notebook_path is None:
        return []
    if notebook_path is not None:
        notebook_path = clean(notebook_path)  # the saved report has the cleaned path
    for entry in store.entries():
        if _age_seconds(entry) > _RECENT_SECONDS:
            break
        if entry.get("kernel_alive") or not _same(entry, kernel_id, notebook_path):
            continue
        if entry["announced"] or not entry["unread"]:
            return []
        with contextlib.suppress(TfGuardError, OSError):
            store.mark(entry["id"], ANNOUNCED)
        return _lines(entry)
    return []


def whose(entry: dict[str, Any], kernel_id: str | None, notebook_path: str | None) -> str | None:
    """``Crash of train.ipynb, not of this notebook.``; None for a crash of this kernel or notebook."""
    if _same(entry, kernel_id, None if notebook_path is None else clean(notebook_path)):
        return None
    path = entry.get("notebook_path")
    whom = (
        f"{path}, not of this notebook" if path else f"another kernel (process {entry.get('pid')})"
    )
    return one_line(f"Crash of {whom}.")


def _same(entry: dict[str, Any], kernel_id: str | None, notebook_path: str | None) -> bool:
    if kernel_id is not None and entry.get("kernel_id") == kernel_id:
        return True
    return notebook_path is not None and entry.get("notebook_path") == notebook_path


def _age_seconds(entry: dict[str, Any]) -> float:
    died = _moment(entry)
    return time.time() - died.timestamp() if died else 0.0


def _moment(entry: dict[str, Any]) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(str(entry["crashed_at"]).replace("Z", "+00:00"))
    except (KeyError, ValueError):
        return None


def _lines(entry: dict[str, Any]) -> list[str]:
    died = _moment(entry)
    clock = f" at {died.astimezone():%H:%M}" if died else ""
    path = entry.get("notebook_path")
    kernel = f"the last kernel of {path.rsplit('/', 1)[-1]}" if path else "the last kernel"
    where = f" in {entry['where']}" if entry.get("where") else ""
    sure = "" if entry["cause"] == "unknown" else f" ({entry['confidence']})"
    first = f"tfguard: {kernel} died{clock}{where}: {entry['short_title']}{sure}."
    step = f"{entry['next_step']} " if entry.get("next_step") else ""
    return [one_line(first), one_line(f"         {step}Details: %tfguard why")]
