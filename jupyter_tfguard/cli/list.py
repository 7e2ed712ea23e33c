"""``jupyter tfguard list``: all reports that are kept, newest first."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..report.text import local_time
from ._records import open_store
from .why import NOTHING


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
        sure = "" if entry["cause"] == "unknown" else f", {entry['confidence']}"
        where = f"{entry.get('notebook_path') or 'no notebook'}{' · ' + entry['where'] if entry.get('where') else ''}"
        print(
            f"{mark} {local_time(entry['died_at'])}  {entry['short_title']} ({entry['cause']}{sure})"
        )
        print(f"    {where}   why: jupyter tfguard why {entry['id']}")
    return 0
