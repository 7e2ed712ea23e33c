"""``jupyter tfguard export [ID]``: one report as a zip file to share, without secrets and personal data."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Literal, TypedDict

from ..errors import TfGuardError
from ..redact import one_line
from ..report.anonymous import Identity
from ..report.choices import PARTS, Choices
from ..report.export import export
from ._records import one_id, open_store
from .why import NOTHING

_SHOWN_FLAGS = 20


class Flagged(TypedDict):
    """Something left in the files that may be a secret or a name."""

    text: str
    why: str
    count: int


class Exported(TypedDict):
    """What was exported."""

    schema_version: Literal[1]
    file: str
    redacted_count: int
    flagged: list[Flagged]


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "export",
        help="save a report as a zip file to share",
        description="Saves a report without secrets, home folders and names. Prints what may still be a secret or a name.",
    )
    parser.add_argument(
        "id",
        nargs="?",
        metavar="ID",
        help="id of the report, or its first characters (default: the newest report)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the zip file (default: tfguard-ID.zip here)",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=PARTS,
        metavar="PART",
        help=f"leave this part out: {', '.join(PARTS)}; can be repeated",
    )
    parser.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="WORD",
        help="replace this word in all files, in upper and lower case; can be repeated",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Save the zip. Exit code 0: saved; 2: not saved."""
    choices = Choices.of(chosen.without, chosen.replace)
    store = open_store()
    ids = store.ids()
    if not ids:
        raise TfGuardError(NOTHING)
    report_id = ids[0] if chosen.id is None else one_id(ids, chosen.id)
    made = export(store.bundle(report_id), store.report(report_id), Identity.of_here(), choices)
    target = chosen.output or Path(f"tfguard-{report_id}.zip")
    try:
        with open(target, "wb" if chosen.force else "xb") as file:
            file.write(made.zipped())
    except FileExistsError as bad:
        raise TfGuardError(f"{target} exists. Pass --force to overwrite it.") from bad
    except OSError as bad:
        raise TfGuardError(f"Could not write {target}: {bad.strerror or bad}.") from bad
    preview = made.preview()
    result: Exported = {
        "schema_version": 1,
        "file": str(target),
        "redacted_count": made.redacted_count,
        "flagged": preview["flagged"],
    }
    if chosen.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result)
    return 0


def _print(result: Exported) -> None:
    print(f"Saved {result['file']}. Removed items: {result['redacted_count']}.")
    flagged = result["flagged"]
    if flagged:
        print(
            f"\nCheck before you share it: {len(flagged)} texts may be secrets or names. To remove one, repeat the command "
            "with --replace TEXT.",
            file=sys.stderr,
        )
        for flag in flagged[:_SHOWN_FLAGS]:
            print(f"  {one_line(flag['text'])[:100]}  ({flag['why']})", file=sys.stderr)
        if len(flagged) > _SHOWN_FLAGS:
            print(f"  and {len(flagged) - _SHOWN_FLAGS} more: --json prints all", file=sys.stderr)
