"""``jupyter tfguard knowledge [TABLE]``: the facts from outside that diagnosis and doctor stand on, with their sources."""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from typing import Any

from ..diagnosis.catalog.listing import Listing, Section, listing, table_names
from ..errors import TfGuardError
from ..report import tables

_LEAST, _MOST = 80, 100  # columns


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "knowledge",
        help="the facts that a diagnosis stands on, with their sources",
        description="Prints a table of outside facts with where each was read; without TABLE, which tables there are.",
    )
    parser.add_argument("table", nargs="?", metavar="TABLE", help="one table, by its name")
    parser.add_argument("--find", metavar="TEXT", help="only rows that hold this text, in any case")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print the tables, or one of them."""
    names = table_names()
    if chosen.table is not None and chosen.table not in names:
        raise TfGuardError(f"There is no table {chosen.table!r}. There are: {', '.join(names)}.")
    found = [listing(name) for name in ([chosen.table] if chosen.table else names)]
    if chosen.find is not None:
        found = [part for part in (_holding(one, chosen.find) for one in found) if part.row_count]
    width = min(_MOST, max(_LEAST, shutil.get_terminal_size((_MOST, 24)).columns))
    if chosen.json:
        print(json.dumps(tables.to_json(found), indent=2, ensure_ascii=False))
    elif not found:
        where = f"the table {chosen.table}" if chosen.table else "any table"
        print(f"No row of {where} holds {chosen.find!r}.")
    elif chosen.table is None and chosen.find is None:
        print(tables.overview(found, width), end="")
        print("\nOne of them: jupyter tfguard knowledge TABLE")
    else:
        print("\n".join(tables.render(one, width) for one in found), end="")
    return 0


def _holding(found: Listing, text: str) -> Listing:
    """Its rows that hold this text."""
    sections = tuple(
        replace(section, rows=_rows(section, text.lower())) for section in found.sections
    )
    return replace(found, sections=sections)


def _rows(section: Section, wanted: str) -> tuple[Any, ...]:
    return tuple(row for row in section.rows if wanted in str(list(row.facts.values())).lower())
