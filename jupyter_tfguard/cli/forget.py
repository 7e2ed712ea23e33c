"""``jupyter tfguard forget``: remove reports, or all that is kept of dead kernels."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from typing import Any

from ..errors import TfGuardError
from ..places import bundles_folder, copies_folder, data_folder, recordings_folder
from ..record.bundle import BundleStore, died_of
from ..record.forget import Forgotten, forget_leftovers, forget_recordings, forget_reports
from ..shield import PROBLEMS_FILE
from ._records import one_id


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "forget",
        help="remove reports and records",
        description="Removes reports for good. Recordings of running kernels always stay.",
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="of a report; the first characters will do"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="all reports, the recordings of dead kernels, and the notes of tfguard's own failures",
    )
    parser.add_argument(
        "--older-than", type=_days, metavar="DAYS", help="reports of deaths longer ago than this"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="what was removed, as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Remove, after asking. Exit code 0: done, 2: nothing removed, or something stayed."""
    store = BundleStore(bundles_folder())
    kept = store.ids()
    wanted = _wanted(chosen, store, kept)
    if not _is_sure(chosen, len(wanted)):
        print("Nothing was removed.", file=sys.stderr)
        return 2
    done = [forget_reports(store, wanted)]
    recordings: list[Forgotten] = []
    if chosen.all:
        roots = dict.fromkeys(filter(None, (recordings_folder(), copies_folder())))
        recordings = [forget_recordings(root) for root in roots]
        done += [forget_leftovers(store), _forget_problems(), *recordings]
    told = {
        "reports": list(done[0].removed),
        "recordings": [name for found in recordings for name in found.removed],
        "living_recordings_left": len({name for found in recordings for name in found.living}),
        "not_removed": [text for found in done for text in found.stayed],
    }
    if chosen.json:
        print(json.dumps(told, indent=2))
    else:
        _print(told, everything=chosen.all)
    return 2 if told["not_removed"] else 0


def _wanted(chosen: argparse.Namespace, store: BundleStore, kept: list[str]) -> list[str]:
    ways = (bool(chosen.ids), chosen.all, chosen.older_than is not None)
    if sum(ways) != 1:
        raise TfGuardError(
            "Say what to forget: ids of reports, --older-than DAYS, or --all, and one of them only. "
            "`jupyter tfguard list` shows the ids."
        )
    if chosen.all:
        return kept
    if chosen.older_than is None:
        return list(dict.fromkeys(one_id(kept, text) for text in chosen.ids))
    border = time.time() - chosen.older_than * 86400
    return [report_id for report_id in kept if died_of(report_id) < border]


def _is_sure(chosen: argparse.Namespace, count: int) -> bool:
    if chosen.yes:
        return True
    if not sys.stdin.isatty():
        if chosen.all:
            raise TfGuardError(
                "Nobody can be asked here: add --yes to remove everything that is kept."
            )
        return True
    if not chosen.all and not count:
        return True
    reports = f"{count} report{'' if count == 1 else 's'}"
    more = ", all recordings of dead kernels, and tfguard's notes of its own failures"
    print(f"Remove {reports}{more if chosen.all else ''} for good? [y/N] ", end="", file=sys.stderr)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _forget_problems() -> Forgotten:
    path = data_folder() / PROBLEMS_FILE
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    except OSError as bad:
        return Forgotten(stayed=(f"{PROBLEMS_FILE}: {bad.strerror or bad}",))
    return Forgotten()


def _print(told: dict[str, Any], *, everything: bool) -> None:
    removed = _count(len(told["reports"]), "report")
    if everything:
        removed += f" and {_count(len(told['recordings']), 'recording')} of dead kernels"
    print(f"Removed {removed}.")
    living = told["living_recordings_left"]
    if living:
        print(
            f"Left {_count(living, 'recording')} of running kernels. What a kernel has recorded so far goes with it: "
            "shut it down, then run this again."
        )
    if told["not_removed"]:
        first = told["not_removed"][0]
        print(
            f"jupyter tfguard: {len(told['not_removed'])} could not be removed, the first is {first}. "
            f"Look at the rights of {data_folder()}, or remove it yourself.",
            file=sys.stderr,
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days")
    return days
