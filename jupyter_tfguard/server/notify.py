"""Notifications of a crash: a line in the server's log, and an event for open pages."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ..record.alive import FRESH_SECONDS
from ..redact import redact
from ..watch.crash.crash import Crash

EVENT_SCHEMA = "https://schema.jupyter-tfguard.org/kernel_crash/v1"
EVENT_SCHEMA_FILE = Path(__file__).with_name("events") / "kernel_crash.yaml"

# Redact before truncating: a truncated key no longer matches a pattern.
_PLAIN_LIMIT = 5000

Entry = dict[str, Any]


def log_crash(log: logging.Logger, entry: Entry) -> None:
    """Log that a kernel crashed, why, and the id of its report; also why the report could not be saved."""
    unsaved = entry.get("unsaved")
    log.warning(
        "tfguard: kernel %s (pid %s) %s: %s, %s. Report %s%s",
        plain(entry.get("kernel_id")),
        plain(entry.get("pid")),
        "lost a child process" if entry.get("kernel_alive") else "died",
        plain(entry.get("cause")),
        plain(entry.get("confidence")),
        plain(entry.get("id")),
        f". {plain(unsaved)}" if unsaved else "",
    )


def log_failure(log: logging.Logger, crash: Crash, bad: Exception, fix: str | None) -> None:
    """Log that a kernel crashed, that its report could not be written, and what can be done."""
    log.warning(
        "tfguard: kernel %s died (%s), but its report could not be written: %s%s tfguard tries again every %.0f min.",
        plain(crash.kernel_id),
        plain(str(crash.facts.exit)),
        plain(f"{type(bad).__name__}: {bad}").rstrip(".") + ".",
        f" {fix}" if fix else "",
        FRESH_SECONDS / 60,
    )


def event_data(entry: Entry) -> dict[str, Any]:
    """The event's data: no source, no path, no title, because operators log events."""
    return {
        "id": str(entry["id"]),
        "kernel_id": str(entry.get("kernel_id") or ""),
        "cause": str(entry["cause"]),
        "confidence": str(entry["confidence"]),
        "kernel_alive": bool(entry.get("kernel_alive")),
    }


def plain(value: object) -> str:
    """Text for one line of a log: no secrets, control characters escaped, at most 300 characters."""
    text = redact(str(value)[:_PLAIN_LIMIT])
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)[:300]
