"""``jupyter tfguard list``: all reports, newest first, and the last stop of each kernel. Equal crashes are one entry."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..places import recordings_folder
from ..record.equal import folded
from ..redact import one_line
from ..report.documents import crashes_json
from ..report.stopped import stopped_cells
from ..units import local_time
from ._records import open_store
from .why import NOTHING


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("list", help="list all reports")
    parser.add_argument(
        "--json", action="store_true", help="print all of them as JSON, newest first"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the list."""
    entries = open_store().entries()
    if chosen.json:
        print(json.dumps(crashes_json(entries), indent=2))
        return 0
    if not entries:
        print(NOTHING)
    for entry, others in folded(entries):
        mark = "*" if entry["unread"] else " "
        print(one_line(f"{mark} {local_time(entry['crashed_at'])}  {_what(entry)}"))
        print(one_line(f"    {_where(entry, others)}   why: jupyter tfguard why {entry['id']}"))
    if stops := stopped_cells(recordings_folder()):
        print("Cells that tfguard stopped; their kernels went on:")
        for one in stops:
            print(f"  {one.headline}")
    return 0


def _what(entry: dict[str, Any]) -> str:
    sure = "" if entry["cause"] == "unknown" else f", {entry['confidence']}"
    return f"{entry['short_title']} ({entry['cause']}{sure})"


def _where(entry: dict[str, Any], others: list[dict[str, Any]]) -> str:
    parts = [entry.get("notebook_path") or "no notebook", entry.get("where")]
    if others:
        parts.append(f"{len(others)} more like this since {local_time(others[-1]['crashed_at'])}")
    return " · ".join(part for part in parts if part)
