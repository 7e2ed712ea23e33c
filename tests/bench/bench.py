"""What the benchmark scripts share: options, interleaving, and a table.

A script declares cases; each case measures once per call and returns numbers by name. Cases take turns, so that a machine
that is busy for a while is busy for all of them.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Measure = Callable[[], dict[str, float]]
Rows = dict[str, list[dict[str, float]]]


class Bench:
    """One benchmark script.

    Args:
        name: Of the script.
        title: What it measures.
        repetitions: How often each case is measured; `quick_repetitions` with ``--quick``.
        add_arguments: Declares options of the script's own.
    """

    def __init__(
        self,
        name: str,
        title: str,
        *,
        repetitions: int,
        quick_repetitions: int,
        add_arguments: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
    ) -> None:
        parser = argparse.ArgumentParser(description=title)
        parser.add_argument(
            "--quick", action="store_true", help="few repetitions: does it run at all"
        )
        parser.add_argument(
            "--only", action="append", metavar="CASE", help="only this case; may be repeated"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
        add_arguments(parser)
        self.options = parser.parse_args()
        self.name, self.title = name, title
        self._count = quick_repetitions if self.options.quick else repetitions

    @property
    def quick(self) -> bool:
        """True when only a look is wanted."""
        return bool(self.options.quick)

    def wants(self, case: str) -> bool:
        """True when this case is to be measured."""
        return not self.options.only or case in self.options.only

    def run(self, cases: Mapping[str, Measure]) -> Rows:
        """Measure in turns; all measurements by case."""
        unknown = set(self.options.only or ()) - set(cases)
        if unknown:
            sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(cases)}")
        rows: Rows = {case: [] for case in cases}
        order = list(cases.items())
        for repetition in range(self._count):
            # Whoever comes first in a turn, or after the same one each time, would be measured in another state.
            for case, measure in (
                *order[repetition % len(order) :],
                *order[: repetition % len(order)],
            ):
                if self.wants(case):
                    rows[case].append(measure())
        return {case: found for case, found in rows.items() if self.wants(case)}

    def report(self, rows: Rows, ratios: Mapping[str, list[float]]) -> None:
        """Print medians and spread, and of the ratios the same.

        Args:
            rows: As :meth:`run` gave them.
            ratios: By name; each as :func:`paired` gives them, empty ones are left out.
        """
        found = {case: summary(measured) for case, measured in rows.items()}
        if given := {name: values for name, values in ratios.items() if values}:
            found["ratio"] = {
                name: summary([{name: v} for v in values])[name] for name, values in given.items()
            }
        if self.options.json:
            print(json.dumps({"benchmark": self.name, "cases": found} | machine()))
            return
        print(f"{self.title}\n{machine()}\n")
        print(f"{'case':24} {'number':34} {'median':>12} {'10 %':>12} {'90 %':>12} {'n':>4}")
        for case, numbers in found.items():
            for number, s in numbers.items():
                line = f"{s['median']:12.6g} {s['low']:12.6g} {s['high']:12.6g} {s['count']:4.0f}"
                print(f"{case:24} {number:34} {line}")


def paired(rows: Rows, above: tuple[str, str], below: tuple[str, str]) -> list[float]:
    """One ratio per turn: a number of one case over a number of another (or the same) case, each as (case, number)."""
    pairs = zip(rows.get(above[0], ()), rows.get(below[0], ()), strict=False)
    return [
        one[above[1]] / other[below[1]]
        for one, other in pairs
        if above[1] in one and other.get(below[1])
    ]


def summary(rows: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Median, 10 % and 90 % of each number."""
    names = {name: None for row in rows for name in row}
    found = {}
    for name in names:
        values = sorted(row[name] for row in rows if name in row)
        low, high = (
            values[int(0.1 * (len(values) - 1))],
            values[int(0.9 * (len(values) - 1) + 0.999)],
        )
        found[name] = {
            "median": statistics.median(values),
            "low": low,
            "high": high,
            "count": len(values),
        }
    return found


def machine() -> dict[str, Any]:
    """Where and when this was measured."""
    return {
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
