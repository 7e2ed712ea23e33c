"""``jupyter tfguard why [ID]``: why a kernel died; the last one unless an id is given."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..errors import BundleNotFound
from ..record.bundle import READ
from ..report import text
from ..shield import note_problem
from ._records import one_id, open_store

NOTHING = "Nothing has died yet, as far as tfguard knows: there is no report."


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("why", help="why a kernel died")
    parser.add_argument(
        "id", nargs="?", help="of the report (default: the last one); the first characters will do"
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print one report."""
    store = open_store()
    ids = [entry["id"] for entry in store.entries()]
    if chosen.id is None and not ids:
        print("null" if chosen.json else NOTHING)
        return 0
    report_id = ids[0] if chosen.id is None else one_id(ids, chosen.id)
    report = store.report(report_id)
    print(
        json.dumps(report, indent=2) if chosen.json else text.render(report),
        end="\n" if chosen.json else "",
    )
    try:
        store.mark(report_id, READ)
    except (OSError, BundleNotFound) as bad:  # a full disk, or removed meanwhile: it was shown
        note_problem("marking a report as read", bad)
    return 0
