"""``jupyter tfguard why [ID]``: why a kernel died; the last one unless an id is given."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..errors import TfGuardError
from ..record.bundle import READ
from ..report import text
from ._records import open_store

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
    if chosen.id is not None:
        ids = [found for found in ids if found.startswith(chosen.id)] or [chosen.id]
        if len(ids) > 1:
            raise TfGuardError(
                f"{len(ids)} reports begin with {chosen.id!r}: {', '.join(ids[:5])}."
            )
    if not ids:
        print("null" if chosen.json else NOTHING)
        return 0
    report = store.report(ids[0])
    print(
        json.dumps(report, indent=2) if chosen.json else text.render(report),
        end="\n" if chosen.json else "",
    )
    store.mark(ids[0], READ)
    return 0
