"""How many kernels the guard saves and how many healthy runs it harms: ``python tests/bench/survival.py --level soft``.

Runs each program of ``tests/bench/survival/`` in a real kernel in a real memory group of 2 GiB, without a guard and with one.
A killing program survives when its cell raises an exception and the kernel is alive; it is retried when the ``retry`` cell
then works in the same kernel. A healthy program is harmed when it is stopped or its result differs from the run without a guard.

Each run is appended to ``build/survival/LEVEL.jsonl``; after an interruption the next call goes on there (``--fresh`` begins
again). A third of each kind is held out: not to be read while the guard is tuned, only scored.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.survival_programs import Program, Run, programs, run  # noqa: E402

LEVELS = ("none", "off", "soft", "full")
Results = dict[str, list[Run]]


def main() -> int:
    """Run what is missing, then print the score."""
    # Ended from outside, no kernel and no group may stay behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    options = _arguments()
    chosen = _chosen(options)
    if options.list:
        for program in chosen:
            print(
                f"{'held out' if program.held_out else 'seen':8}  {program.kind:7}  {program.name}"
            )
        return 0
    skipped = {p.name: missing for p in chosen if (missing := p.missing(options.python))}
    for name, missing in skipped.items():
        _say(f"{name}: skipped, needs {', '.join(missing)}")
    chosen = [program for program in chosen if program.name not in skipped]
    levels: tuple[str, ...] = ("none", options.level) if options.level != "none" else ("none",)
    results = {level: _read(options, level, chosen) for level in levels}
    for turn in range(options.pairs):
        for number, program in enumerate(chosen):
            guarded_first = (turn + number) % 2 == 1
            for found in _missing(program, levels, results, turn, guarded_first, options.python):
                results[found.level].setdefault(program.name, []).append(found)
                _write(options, found)
                _say(_line(found))
    rows = [_row(p, results["none"][p.name], results[levels[-1]][p.name]) for p in chosen]
    score = _score(rows, skipped)
    print(json.dumps(score, indent=1) if options.json else _table(score, options.level))
    return 0


def _missing(
    program: Program,
    levels: tuple[str, ...],
    results: dict[str, Results],
    turn: int,
    guarded_first: bool,
    python: str,
) -> Iterator[Run]:
    """The runs that are missing. A healthy program runs in pairs: a machine that is busy for a while is busy for both."""
    have = {level: len(results[level].get(program.name, [])) for level in levels}
    if program.kind == "healthy" and len(levels) == 2:
        if have[levels[1]] > turn:
            return
        order = reversed(levels) if guarded_first else levels
        pair = {level: run(program, level, python) for level in order}
        without, guarded = (pair[level] for level in levels)
        guarded.pair_seconds, guarded.pair_cpu_seconds = without.seconds, without.cpu_seconds
        yield from (without, guarded)
        return
    for level in levels:
        if not have[level]:
            yield run(program, level, python)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--level", choices=LEVELS, default="full", help="none: only without guard")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these programs")
    parser.add_argument("--kind", choices=("killing", "healthy"), help="only these programs")
    parser.add_argument("--program", type=Path, metavar="FILE.py", help="run a file of your own")
    side = parser.add_mutually_exclusive_group()
    side.add_argument("--held-out", action="store_true", help="only the programs set aside")
    side.add_argument("--seen", action="store_true", help="only the others")
    parser.add_argument("--list", action="store_true", help="print the programs, run nothing")
    parser.add_argument("--pairs", type=int, default=1, metavar="N", help="pairs of runs, healthy")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs of this choice")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "survival")
    parser.add_argument("--python", default=sys.executable, help="the kernels' interpreter")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[Program]:
    if options.program:
        return [Program.read(options.program, options.kind or "")]
    found = programs()
    unknown = set(options.only or ()) - {program.name for program in found}
    if unknown:
        sys.exit(f"no such program: {', '.join(sorted(unknown))}; --list prints them")
    return [
        program
        for program in found
        if (not options.only or program.name in options.only)
        and (not options.kind or program.kind == options.kind)
        and (program.held_out or not options.held_out)
        and not (program.held_out and options.seen)
    ]


def _read(options: argparse.Namespace, level: str, chosen: list[Program]) -> Results:
    """Earlier runs of the chosen programs; with ``--fresh`` those at the chosen level are forgotten."""
    path = options.results / f"{level}.jsonl"
    lines = path.read_text().splitlines() if path.is_file() else []
    runs = [Run(**json.loads(line)) for line in lines if line.endswith("}")]
    versions = {program.name: program.version for program in chosen}
    if options.fresh and level == options.level and runs:
        runs = [each for each in runs if each.name not in versions]
        path.write_text("".join(json.dumps(each.json()) + "\n" for each in runs))
    found: Results = {}
    for each in runs:
        if versions.get(each.name) == each.version:
            found.setdefault(each.name, []).append(each)
    return found


def _write(options: argparse.Namespace, found: Run) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    with open(options.results / f"{found.level}.jsonl", "a") as file:
        file.write(json.dumps(found.json()) + "\n")


def _row(program: Program, without: list[Run], with_: list[Run]) -> dict[str, Any]:
    """One program's line of ``per_program``. Several runs: harmed once is harmed."""
    last = with_[-1]
    row: dict[str, Any] = {
        "name": program.name,
        "kind": program.kind,
        "held_out": program.held_out,
        "outcome_without": without[-1].outcome,
        "peak_fraction_without": without[-1].peak_fraction,
        **{key: value for key, value in last.json().items() if key not in ("name", "kind")},
    }
    if program.kind == "healthy":
        bad = [
            each for each in with_ if each.outcome != "finished" or each.digest != without[0].digest
        ]
        row["harmed"] = bool(bad)
        row["outcome"], row["error"] = (bad[0].outcome, bad[0].error) if bad else (last.outcome, "")
        row["seconds_ratio"] = _median(r.seconds / r.pair_seconds for r in with_ if r.pair_seconds)
        row["cpu_ratio"] = _median(
            r.cpu_seconds / r.pair_cpu_seconds for r in with_ if r.pair_cpu_seconds
        )
    else:
        row["survived_without"] = without[-1].outcome == "raised"
        row["survived"] = last.outcome == "raised"
    return row


def _score(rows: list[dict[str, Any]], skipped: dict[str, list[str]]) -> dict[str, Any]:
    killing = [row for row in rows if row["kind"] == "killing"]
    healthy = [row for row in rows if row["kind"] == "healthy"]
    stops = [row["stop_seconds"] for row in killing if row["stop_seconds"] is not None]
    return {
        "programs": len(killing),
        "survived_without": sum(row["survived_without"] for row in killing),
        "survived_with": sum(row["survived"] for row in killing),
        "retried": sum(row["retried"] is True for row in killing),
        "healthy": len(healthy),
        "harmed": sum(row["harmed"] for row in healthy),
        "stop_seconds_median": _median(stops),
        "seconds_ratio_median": _median(row["seconds_ratio"] for row in healthy),
        "cpu_ratio_median": _median(row["cpu_ratio"] for row in healthy),
        "skipped": skipped,
        "per_program": rows,
    }


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 4) if known else None


def _table(score: dict[str, Any], level: str) -> str:
    """The score in Markdown, for RESULTS.md."""
    lines = [
        f"| level {level} | programs | survive without | survive | retried | healthy | harmed |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, held_out in (("all", (True, False)), ("seen", (False,)), ("held out", (True,))):
        part = _score([row for row in score["per_program"] if row["held_out"] in held_out], {})
        keys = ("programs", "survived_without", "survived_with", "retried", "healthy", "harmed")
        lines.append(f"| {title} | {' | '.join(str(part[key]) for key in keys)} |")
    lines += [
        f"\nThreshold to exception, median: {score['stop_seconds_median']} s. Run time of healthy programs with / without, "
        f"median: wall ×{score['seconds_ratio_median']}, CPU ×{score['cpu_ratio_median']}.",
        "\n| program | | without | with | surfaced | stop, s | peak | CPU × | retry |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in score["per_program"]:
        set_aside = "held out" if row["held_out"] else "seen"
        with_ = "**harmed**" if row.get("harmed") else row["outcome"]
        retry = {True: "works", False: f"fails: {row['retry_error']}", None: ""}[row["retried"]]
        stop = "" if row["stop_seconds"] is None else f"{row['stop_seconds']:.3f}"
        peak = f"{row['peak_fraction_without']:.0%} → {row['peak_fraction']:.0%}"
        error = row["error"].replace("|", "\\|")
        lines.append(
            f"| {row['name']} | {row['kind']}, {set_aside} | {row['outcome_without']} | {with_} | {error} | {stop} | {peak} | {row.get('cpu_ratio') or ''} | {retry} |"
        )
    return "\n".join(lines)


def _line(found: Run) -> str:
    retry = {True: ", retry works", False: f", retry fails: {found.retry_error}", None: ""}
    return (
        f"{found.level:4}  {found.kind:7}  {found.name:32} {found.outcome:9} peak {found.peak_fraction:6.1%} "
        f"{found.seconds:6.1f} s  {found.error}{retry[found.retried]}"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
