"""Which cause real deaths get, and real and written near misses: ``python tests/benchmarks/death_causes.py [--only WORDS]``.

Each death is that of a kernel of a real server, several at a time; the tables are those of ``tests/crash``. Seconds are from
the cell that ends the kernel to its report, TensorFlow's import included where there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.bench import machine
from tests.conftest import private_jupyter
from tests.crash.conftest import RecordingServer
from tests.crash.kinds import KINDS
from tests.crash.near_misses import NEAR_MISSES
from tests.crash.near_records import RIGHT_ANSWERS, diagnosed
from tests.crash.scene import Played, Scene, Theatre
from tests.crash.settings import write_settings

Row = dict[str, Any]


def row_of(played: Played) -> Row:
    """What came of a real one."""
    scene = played.scene
    return {
        "name": scene.name,
        "expected": scene.causes[0] if scene.causes else "no report",
        "got": played.cause or ("not played" if played.missing else "no report"),
        "confidence": played.confidence,
        "seconds": round(played.seconds, 1),
        "right": played.right and not played.missing,
        "wrong_certain": played.wrong_certain,
        "missing": played.missing,
    }


def written_row(path: str) -> Row:
    """What is said of a written one."""
    found, right = diagnosed(path), RIGHT_ANSWERS[path]
    sure = [f.cause for f in found.findings if f.confidence.value == "certain"]
    return {
        "name": path,
        "expected": right[0],
        "got": found.best.cause,
        "confidence": found.best.confidence.value,
        "right": found.best.cause in right,
        "wrong_certain": [cause for cause in sure if cause not in right],
        "missing": "",
    }


def play_all(scenes: Sequence[Scene], theatre: Theatre) -> list[Row]:
    """Rows in the order of the table."""
    return [row_of(theatre.outcome(scene)) for scene in scenes]


def summary(rows: Iterable[Row]) -> Row:
    """Counts of one table."""
    played = [row for row in rows if not row["missing"]]
    return {
        "played": len(played),
        "right": sum(row["right"] for row in played),
        "wrong_certain": sum(bool(row["wrong_certain"]) for row in played),
        "wrong_likely": sum(not row["right"] and row["confidence"] == "likely" for row in played),
    }


def show(title: str, rows: Sequence[Row]) -> None:
    """Print one table and its counts."""
    print(f"\n{title}\n{'':75} {'expected':29} {'got':29} {'':9} {'seconds':>7}")
    for row in rows:
        mark = "" if row["right"] else "  not played" if row["missing"] else "  WRONG"
        seconds = row.get("seconds", "")
        print(
            f"{row['name'][:74]:75} {row['expected']:29} {row['got']:29} {row['confidence']:9} {seconds!s:>7}{mark}"
        )
    print(", ".join(f"{name} {count}" for name, count in summary(rows).items()))


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Causes of real deaths and of near misses")
    parser.add_argument(
        "--only", metavar="WORDS", default="", help="names with these words in them"
    )
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    kinds, near = (
        [scene for scene in scenes if chosen.only in scene.name] for scenes in (KINDS, NEAR_MISSES)
    )
    with tempfile.TemporaryDirectory() as folder, private_jupyter(home := Path(folder)):
        write_settings(home / "data" / "kernels")
        server = RecordingServer(home / "work", home / "tfguard")
        try:
            theatre = Theatre(server, (*kinds, *near))
            tables = {
                "kinds of death": play_all(kinds, theatre),
                "near misses, played": play_all(near, theatre),
            }
            theatre.close()
        finally:
            server.stop()
    tables["near misses, written"] = [
        written_row(path) for path in sorted(RIGHT_ANSWERS) if chosen.only in path
    ]
    if chosen.json:
        counts = {title: summary(rows) for title, rows in tables.items()}
        print(json.dumps({"tables": tables, "counts": counts} | machine(), indent=1))
        return
    for title, rows in tables.items():
        show(title, rows)


if __name__ == "__main__":
    main()
