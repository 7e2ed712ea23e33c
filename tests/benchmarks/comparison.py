"""jupyter-tfguard beside its peers: ``python -m tests.benchmarks.comparison FOLDER [deaths] [costs] [page]``.

``deaths`` lets a kernel die in thirteen ways in seven tools, ``costs`` measures by turns, ``page`` writes what both left in
FOLDER into ``notebooks/comparison.md``; a part that left nothing stays as it is there. Without a part, all three run. FOLDER
keeps the environment of the peers, which is installed there once. Deaths need Linux, root and Chromium; costs need an idle machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, sync_playwright

from tests.benchmarks.peers import costs, page
from tests.benchmarks.peers.deaths import DEATHS, Death
from tests.benchmarks.peers.environment import machine, peers_python, versions
from tests.benchmarks.peers.lab import LabTool, lab_tools
from tests.benchmarks.peers.marimo import Marimo
from tests.benchmarks.peers.programs import Program
from tests.benchmarks.peers.watching import Said
from tests.browser.conftest import launch

Tool = LabTool | Marimo | Program
PARTS = ("deaths", "costs", "page")
PAGE = Path(__file__).parents[2] / "notebooks" / "comparison.md"
_TRIES = 2


def tools(ours: str, peers: str) -> tuple[Tool, ...]:
    """All seven."""
    return (
        *lab_tools(ours, peers),
        Marimo(peers),
        Program("papermill", peers),
        Program("memray", peers),
    )


def play(tool: Tool, death: Death, browser: Browser) -> list[Said] | None:
    """One death in one tool; None when page or server did not come up, twice."""
    for _ in range(_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            try:
                if isinstance(tool, Program):
                    return tool.play(death, Path(folder))
                return tool.play(death, Path(folder), browser)
            except (AssertionError, Error, RuntimeError) as bad:
                print(f"{tool.name}, {death.name}: {str(bad)[:300]}", file=sys.stderr, flush=True)
    return None


def play_all(
    chosen: list[Tool], deaths: list[Death]
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Tool, death, and what was said, one after the other."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for death in deaths:
            for tool in chosen:
                began = time.monotonic()
                said = play(tool, death, browser)
                if said is None:
                    continue
                print(
                    f"{death.name:14} {tool.name:24} {time.monotonic() - began:5.0f} s", flush=True
                )
                yield tool.name, death.name, [dataclasses.asdict(one) for one in said]
        browser.close()


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where environment and results are kept")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--only", action="append", metavar="NAME", help="a tool or a death")
    parser.add_argument("--turns", type=int, default=4, help="of the costs")
    options = parser.parse_intermixed_args()
    # A shell ignores Ctrl-C for what it starts in the background, and so would the tools here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parts, folder = options.parts or PARTS, options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    peers = peers_python(folder)
    known = {"machine": machine(), "versions": versions(peers)}
    if "deaths" in parts:
        chosen = _only(tools(sys.executable, peers), options.only)
        deaths = _only(DEATHS, options.only)
        for tool, death, said in play_all(chosen, deaths):
            results = folder / "deaths" / f"{tool}.json"
            results.parent.mkdir(exist_ok=True)
            found = json.loads(results.read_text())["found"] if results.exists() else {}
            found[death] = said
            results.write_text(json.dumps(known | {"found": found}, indent=1))
    if "costs" in parts:
        for turns in costs.measure(sys.executable, peers, options.turns):
            (folder / "costs.json").write_text(json.dumps(known | {"turns": turns}, indent=1))
    if "page" in parts:
        PAGE.write_text(page.write(folder, PAGE.read_text()))
        print(PAGE)


def _only(all_of_them: tuple[Any, ...], names: list[str] | None) -> list[Any]:
    """Those that are named; all where none is."""
    found = [one for one in all_of_them if one.name in (names or ())]
    return found or list(all_of_them)


if __name__ == "__main__":
    main()
