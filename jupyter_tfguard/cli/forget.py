"""``jupyter tfguard forget``: remove reports, or everything recorded of dead kernels."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Any, Literal, TypedDict

from ..errors import TfGuardError
from ..places import bundles_folder, copies_folder, data_folder, recordings_folder
from ..record.bundle import BundleStore
from ..record.retention import Forgotten, forget_leftovers, forget_recordings, forget_reports
from ..shield import PROBLEMS_FILE
from ._records import one_id


class Removal(TypedDict):
    """What was removed, and what was not."""

    schema_version: Literal[1]
    reports: list[str]
    recordings: list[str]
    living_recordings_left: int
    not_removed: list[str]


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "forget",
        help="delete reports and recordings",
        description="Deletes reports. This cannot be undone. Never deletes recordings of running kernels.",
    )
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="id of a report, or its first characters"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="delete all reports, the recordings of dead kernels, and the log of tfguard's own errors",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--json", action="store_true", help="print what was deleted as JSON")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Remove after confirmation. Exit code 0: done; 2: nothing was removed, or some items remain."""
    store = BundleStore(bundles_folder())
    wanted = _wanted(chosen, store.ids())
    if not _is_sure(chosen, len(wanted)):
        print("Nothing was deleted.", file=sys.stderr)
        return 2
    done = [forget_reports(store, wanted)]
    recordings: list[Forgotten] = []
    if chosen.all:
        roots = dict.fromkeys(filter(None, (recordings_folder(), copies_folder())))
        recordings = [forget_recordings(root) for root in roots]
        forget_leftovers(store)
        done += [_forget_problems(), *recordings]
    result: Removal = {
        "schema_version": 1,
        "reports": list(done[0].removed),
        "recordings": [name for found in recordings for name in found.removed],
        "living_recordings_left": len({name for found in recordings for name in found.living}),
        "not_removed": [text for found in done for text in found.stayed],
    }
    if chosen.json:
        print(json.dumps(result, indent=2))
    else:
        _print(result, everything=chosen.all)
    return 2 if result["not_removed"] else 0


def _wanted(chosen: argparse.Namespace, kept: list[str]) -> list[str]:
    if chosen.all == bool(chosen.ids):
        raise TfGuardError("Pass the ids of reports (`jupyter tfguard list` shows them) or --all.")
    if chosen.all:
        return kept
    return list(dict.fromkeys(one_id(kept, text) for text in chosen.ids))


def _is_sure(chosen: argparse.Namespace, count: int) -> bool:
    """Whether to continue. Only removal of everything needs confirmation."""
    if chosen.yes or not chosen.all:
        return True
    if not sys.stdin.isatty():
        raise TfGuardError("Not a terminal; pass --yes to delete everything.")
    print(
        f"Delete {_count(count, 'report')}, all recordings of dead kernels, and the log of tfguard's own errors? "
        "This cannot be undone. [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _forget_problems() -> Forgotten:
    path = data_folder() / PROBLEMS_FILE
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    except OSError as bad:
        return Forgotten(stayed=(f"{PROBLEMS_FILE}: {bad.strerror or bad}",))
    return Forgotten()


def _print(result: Removal, *, everything: bool) -> None:
    removed = _count(len(result["reports"]), "report")
    if everything:
        removed += f" and {_count(len(result['recordings']), 'recording')} of dead kernels"
    print(f"Deleted {removed}.")
    living = result["living_recordings_left"]
    if living:
        print(
            f"Kept {_count(living, 'recording')} of running kernels. "
            "To delete them, shut the kernels down, then run this command again."
        )
    if result["not_removed"]:
        first = result["not_removed"][0]
        print(
            f"jupyter tfguard: could not delete {_count(len(result['not_removed']), 'item')}; the first is {first}. "
            f"Check the permissions of {data_folder()}, or delete the items yourself.",
            file=sys.stderr,
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
