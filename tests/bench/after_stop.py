"""Does the kernel keep what the message of a stop promises: ``python tests/bench/after_stop.py --level soft``.

Runs programs with threads, pools, tasks and executors (``survival/concurrent``) in real kernels in memory groups of 1 GiB, and lets the
guard stop them. After the message each kernel is watched for a minute: a kernel that ends breaks the promise. Within that minute the
``retry`` cell runs, then libraries that keep threads or processes of their own (``survival/libraries``).

A library's own program is: its ``start`` cell, a loop that fills the memory in the same cell, then its ``after`` cell.

Each run is appended to ``build/after_stop/LEVEL.jsonl``. A third of the programs is held out, as in ``survival.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.survival_kernel import LimitedKernel  # noqa: E402
from tests.bench.survival_programs import FOLDER, Program  # noqa: E402

LIMIT_BYTES = 1 << 30
WATCH_SECONDS = 60.0
CELL_SECONDS = 90.0
AFTER_SECONDS = 90.0
LIBRARIES_EACH = 2
_FILL = "\n_kept = []\nwhile True:\n    _kept.append(bytearray(b'x' * (1 << 20)))\n"
_STOPPED = "tfguard stopped this cell"
_EMPTY = "_kept = None\n"


@dataclass(slots=True)
class Outcome:
    """One run.

    Attributes:
        outcome: "stopped", "died" before any message, "hung", "finished", or "setup failed".
        ended_after_seconds: From the message to the kernel's end; None if it lived through the watch.
        after: Result by what ran after the stop: "ok" or what went wrong.
        message: The exception's text.
    """

    program: str
    kind: str
    held_out: bool
    level: str
    outcome: str = ""
    error: str = ""
    ending: str = ""
    ended_after_seconds: float | None = None
    after: dict[str, str] = field(default_factory=dict)
    message: str = ""


def main() -> int:
    """Run the programs in turns until there are as many stops as wanted."""
    options = _arguments()
    concurrent, libraries = (
        [Program.read(path, kind) for path in sorted((FOLDER / kind).glob("*.py"))]
        for kind in ("concurrent", "libraries")
    )
    usable = [one for one in (*concurrent, *libraries) if not one.missing(options.python)]
    chosen = [
        one
        for one in usable
        if (not options.only or one.name in options.only)
        and not (one.held_out and options.seen)
        and (one.held_out or not options.held_out)
    ]
    jobs = [(turn, number) for turn in range(options.turns) for number in range(len(chosen))]
    helpers = [one for one in usable if one.kind == "libraries"]

    def run(job: tuple[int, int]) -> Outcome:
        turn, number = job
        program = chosen[number]
        first = (turn + number) * LIBRARIES_EACH
        after = [helpers[(first + k) % len(helpers)] for k in range(LIBRARIES_EACH)]
        found = _run(program, after, options.level, options.python)
        _write(options, found)
        print(_line(found), file=sys.stderr, flush=True)
        return found

    with ThreadPoolExecutor(options.at_once) as pool:
        results = list(pool.map(run, jobs))
    print(_table(results))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=("soft", "full"), default="soft")
    parser.add_argument("--turns", type=int, default=5, help="runs of each program")
    parser.add_argument("--at-once", type=int, default=4, help="kernels at the same time")
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--seen", action="store_true", help="leave out what is held out")
    parser.add_argument("--held-out", action="store_true", help="only what is held out")
    parser.add_argument("--python", default=sys.executable, help="the kernels' interpreter")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "after_stop")
    return parser.parse_args()


def _run(program: Program, libraries: list[Program], level: str, python: str) -> Outcome:
    found = Outcome(program.name, program.kind, program.held_out, level)
    cells = dict(program.cells)
    with LimitedKernel(level, python, limit_bytes=LIMIT_BYTES) as kernel:
        if program.kind == "libraries":
            body, after = cells["start"] + _FILL, [(program.name, _EMPTY + cells["after"])]
        else:
            ready = kernel.run(cells["setup"], seconds=CELL_SECONDS)
            if ready.ended != "ok":
                found.outcome, found.error = "setup failed", ready.error
                return found
            body = cells[""]
            after = [("retry", cells["retry"])]
            after += [(one.name, dict(one.cells)["after"]) for one in libraries]
        ran = kernel.run(body, seconds=CELL_SECONDS)
        shown = time.monotonic()
        found.error, found.message = ran.error, ran.message
        if ran.ended == "died":
            found.outcome, found.ending = "died", kernel.ending()
            return found
        # IPython prints a group of exceptions as text.
        ended = "error" if _STOPPED in ran.text else ran.ended
        found.outcome = {"error": "stopped", "ok": "finished", "hung": "hung"}[ended]
        for name, code in after:
            again = kernel.run(code, seconds=AFTER_SECONDS)
            found.after[name] = "ok" if again.ended == "ok" else f"{again.ended}: {again.error}"
            if not kernel.is_alive:
                break
        while kernel.is_alive and time.monotonic() - shown < WATCH_SECONDS:
            time.sleep(0.1)
        if not kernel.is_alive:
            found.ended_after_seconds = round(time.monotonic() - shown, 1)
            found.ending = f"{kernel.ending()}, {kernel.oom_kills()} OOM kills"
    return found


def _write(options: argparse.Namespace, found: Outcome) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    with open(options.results / f"{found.level}.jsonl", "a") as file:
        file.write(json.dumps(asdict(found)) + "\n")


def _line(found: Outcome) -> str:
    wrong = {name: said for name, said in found.after.items() if said != "ok"}
    ended = (
        "" if found.ended_after_seconds is None else f" ENDED after {found.ended_after_seconds} s"
    )
    return (
        f"{found.level} {found.program:34} {found.outcome:9}{ended} {found.ending} "
        f"{found.error[:110]} {wrong or ''}"
    )


def _table(results: list[Outcome]) -> str:
    """Counts in Markdown, for RESULTS.md."""
    lines = [
        "| | runs | stopped | died without a message | kernel ended within a minute | retry works | libraries work |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, held_out in (("all", (True, False)), ("seen", (False,)), ("held out", (True,))):
        part = [one for one in results if one.held_out in held_out]
        outcomes = Counter(one.outcome for one in part)
        retries = [one.after["retry"] for one in part if "retry" in one.after]
        others: list[Any] = [
            said for one in part for name, said in one.after.items() if name != "retry"
        ]
        lines.append(
            f"| {title} | {len(part)} | {outcomes['stopped']} | {outcomes['died']} | "
            f"{sum(one.ended_after_seconds is not None for one in part)} | "
            f"{retries.count('ok')} of {len(retries)} | {others.count('ok')} of {len(others)} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
