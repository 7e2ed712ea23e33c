"""The frame of the rigs that try tfguard in environments of their own: options, one trial a row, a table or JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

ROOT = Path(__file__).parents[2]


class NamedRow(Protocol):
    """One combination to try."""

    @property
    def name(self) -> str: ...


AnyRow = TypeVar("AnyRow", bound=NamedRow)
Prepared = TypeVar("Prepared")
# What came of a row: ``ok``, ``FAILED`` or ``not run``, and more about it.
Outcome = tuple[str, str]


def try_rows(
    about: str,
    rows: Sequence[AnyRow],
    prepare: Callable[[Path], Prepared],
    trial: Callable[[AnyRow, Prepared, Path], Outcome],
) -> int:
    """Try the rows that the command line asks for, and print what came of them; the exit code.

    Args:
        about: First line of the help.
        rows: All there are.
        prepare: Called once with the folder of the environments; what it gives goes to every trial.
        trial: Called with a row, what was prepared, and the folder.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--only", nargs="*", metavar="NAME", help="rows whose name holds one of these words"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the environments here, and use them again"
    )
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="tfguard-trials-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        prepared = prepare(folder)
        results = {
            row.name: trial(row, prepared, folder)
            for row in rows
            if not chosen.only or any(word in row.name for word in chosen.only)
        }
    finally:
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if chosen.json:
        print(json.dumps(results, indent=2))
    else:
        for name, (status, text) in results.items():
            print(f"{status:8} {name:34} {text}")
    return int(any(status == "FAILED" for status, _ in results.values()))


def build_wheel(folder: Path) -> Path:
    """The wheel of the project as it is now."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(pip, check=True)
    return max(folder.glob("jupyter_tfguard-*.whl"), key=lambda path: path.stat().st_mtime)
