"""``jupyter tfguard list``: all reports that are kept, newest first."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..redact import one_line
from ..report.text import local_time
from ._records import open_store
from .why import NOTHING

_CAUSES = 3


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("list", help="all deaths that are kept")
    parser.add_argument("--json", action="store_true", help="one JSON list, newest first")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the list."""
    entries = open_store().entries()
    if chosen.json:
        print(json.dumps(entries, indent=2))
    elif not entries:
        print(NOTHING)
    for entry in [] if chosen.json else entries:
        mark = "*" if entry["unread"] else " "
        print(one_line(f"{mark} {local_time(entry['died_at'])}  {_what(entry)}"))
        print(one_line(f"    {_where(entry)}   why: jupyter tfguard why {entry['id']}"))
    return 0


def _what(entry: dict[str, Any]) -> str:
    sure = "" if entry["cause"] == "unknown" else f", {entry['confidence']}"
    group = entry.get("group")
    if group is None:
        return f"{entry['short_title']} ({entry['cause']}{sure})"
    causes = ", ".join(f"{c['count']:,} × {c['cause']}" for c in group["causes"][:_CAUSES])
    more = ", ..." if len(group["causes"]) > _CAUSES else ""
    return f"{entry['short_title']} ({causes}{more})"


def _where(entry: dict[str, Any]) -> str:
    group = entry.get("group")
    parts = [entry.get("notebook_path"), entry.get("where")]
    if group is not None:
        parts += [f"counted together since {local_time(group['first_at'])}"]
        if group["one_kernel"] and not parts[0]:
            parts[0] = f"kernel {entry.get('kernel_id') or entry.get('kernel_name') or 'unknown'}"
    elif not parts[0]:
        parts[0] = "no notebook"
    return " · ".join(part for part in parts if part)
