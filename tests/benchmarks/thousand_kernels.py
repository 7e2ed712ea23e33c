"""What a server's tfguard costs with 10, 200 and 1,000 kernels, one in twenty of them busy.

Each measurement is a real Jupyter server of its own (``tests/rigs/stub_kernels.py``), its histories filled before it
measures. Processor: time of tfguard's threads and of its part of the event loop. Memory: anonymous memory of the server
with tfguard, less that of the same server without.

``python tests/benchmarks/thousand_kernels.py [--quick] [--only CASE] [--json] [--fresh]``
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench import Bench, Measure, paired

RIG = Path(__file__).parents[1] / "rigs" / "stub_kernels.py"
COUNTS = (10, 200, 1000)


def measure(kernels: int, seconds: float, *options: str) -> dict[str, float]:
    """Numbers of one server."""
    command = [sys.executable, str(RIG), f"--kernels={kernels}", f"--seconds={seconds}", "--json"]
    done = subprocess.run(
        [*command, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{RIG.name} failed: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def with_and_without(kernels: int, seconds: float, *options: str) -> dict[str, float]:
    """Share of tfguard in a server with so many kernels."""
    bare = measure(kernels, seconds, "--without", *options)
    found = measure(kernels, seconds, *options)
    return {
        "core_fraction": found["core"],
        "core_per_kernel": found["core"] / kernels,
        "memory_bytes": found["memory_bytes"] - bare["memory_bytes"],
        "history_bytes": found["history_bytes"],
        "history_largest_bytes": found["history_largest_bytes"],
        "descriptors": found["descriptors"] - bare["descriptors"],
        "pidfds": found["pidfds"],
        "samples_per_second": found["samples_per_second"],
        **{name: value for name, value in found.items() if name.endswith("_core")},
    }


def dying(kernels: int) -> dict[str, float]:
    """All killed within a second."""
    found = measure(kernels, 3.0, "--kill")
    names = ("killed", "killed_within_seconds", "noticed_within_seconds", "told_kernels")
    return {name: found[name] for name in (*names, "told", "told_within_seconds")}


def main() -> None:
    """Measure and print."""
    bench = Bench(
        "thousand_kernels",
        "tfguard's share of a server, by number of kernels",
        repetitions=3,
        quick_repetitions=1,
    )
    seconds = 5.0 if bench.quick else 30.0

    def case(kernels: int, *options: str) -> Measure:
        return lambda: with_and_without(kernels, seconds, *options)

    cases: dict[str, Measure] = {str(count): case(count) for count in COUNTS}
    cases["1000 dying"] = lambda: dying(1000)
    rows = bench.run(cases)
    per_kernel = "core_per_kernel"
    ratios = {
        f"per kernel, {above} / {below}": paired(
            rows, (str(above), per_kernel), (str(below), per_kernel)
        )
        for above, below in ((200, 10), (1000, 200))
    }
    bench.report(rows, ratios)


if __name__ == "__main__":
    main()
