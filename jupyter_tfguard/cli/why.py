"""``jupyter tfguard why [ID | BUNDLE]``: why a kernel crashed. The default is the last crash."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from ..diagnosis.diagnose import diagnose
from ..errors import BundleNotFound, RecordUnreadable
from ..places import recordings_folder
from ..record.bundle import BUNDLE, READ, died_of
from ..record.bundle_file import LIMIT_BYTES, read_bundle_file
from ..redact import printable
from ..report import explained, text
from ..report.pasted_report import pasted_report
from ..report.stopped import stopped_cells
from ..report.wire import to_entry_and_report
from ..shield import note_problem
from ..units import human_seconds
from ._records import one_id, open_store

_OLD_SECONDS = 600.0  # an older crash may not be the crash that the user means
NO_CRASH = "tfguard has recorded no crash yet."
NOTHING = f"No reports: {NO_CRASH}"


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("why", help="explain why a kernel died")
    parser.add_argument(
        "id",
        nargs="?",
        metavar="ID | BUNDLE",
        help="id of the report, or its first characters (default: the newest report), "
        "or an exported report: its zip file, its folder, or the report.json or report.md in it",
    )
    parser.add_argument(
        "--since",
        type=float,
        metavar="MINUTES",
        help="show the report only if the crash is at most MINUTES old; otherwise exit with status 1",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Print one report."""
    if chosen.id is not None and _is_file(chosen.id):
        if (answer := _of_report(Path(chosen.id))) is not None:
            print(json.dumps(answer, indent=2) if chosen.json else explained.render(answer), end="")
            return 0
        bundle = read_bundle_file(Path(chosen.id))
        _, report = to_entry_and_report(bundle, diagnose(bundle))
        _print(report, chosen.json)
        return 0
    store = open_store()
    entries = store.entries()
    ids = [entry["id"] for entry in entries]
    if chosen.id is None and not chosen.json and chosen.since is None:
        stopped = next(iter(stopped_cells(recordings_folder())), None)
        if stopped is not None and (not ids or stopped.time > died_of(ids[0]) + 1):
            print(f"Last stop: {stopped.text()}")
            print(f"\nLast crash: jupyter tfguard why {ids[0]}" if ids else f"\n{NO_CRASH}")
            return 0
    if chosen.id is None and not ids:
        print("null" if chosen.json else NOTHING)
        return 0
    if chosen.id is None:
        age_seconds = time.time() - died_of(ids[0])
        ago = f"{human_seconds(age_seconds)} ago, {entries[0].get('notebook_path') or 'unknown notebook'}."
        if chosen.since is not None and age_seconds > 60 * chosen.since:
            minutes = f"{chosen.since:g} minutes"
            none = f"No kernel died in the last {minutes}. Last crash: {printable(ago)}"
            print("null" if chosen.json else none)
            return 1
        if age_seconds > _OLD_SECONDS and not chosen.json:
            print(f"Last crash: {printable(ago)}\n")
    report_id = ids[0] if chosen.id is None else one_id(ids, chosen.id)
    _print(store.report(report_id), chosen.json)
    try:
        store.mark(report_id, READ)
    except (
        OSError,
        BundleNotFound,
    ) as bad:  # a full disk, or removed meanwhile; the report was shown
        note_problem("marking a report as read", bad)
    return 0


def _is_file(chosen: str) -> bool:
    # os.path.exists does not raise for a name that is too long; Path.exists does.
    return os.sep in chosen or chosen.endswith(".zip") or os.path.exists(chosen)


def _of_report(path: Path) -> dict[str, Any] | None:
    """The answer in a ``report.json`` or ``report.md`` of an export; None for another file.

    The export's zip file has more: its bundle is judged again by the rules of this version.
    """
    if path.suffix not in (".json", ".md", ".txt") or path.name == BUNDLE or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT_BYTES)
    except OSError as bad:
        raise RecordUnreadable(f"Could not read {path}: {bad.strerror}.") from bad
    answer = pasted_report(content.decode("utf-8", "replace"))
    if answer is None:
        raise RecordUnreadable(
            f"{path} is no report of jupyter-tfguard. For a log: jupyter tfguard explain FILE."
        )
    return answer


def _print(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        print(text.render(report), end="")
