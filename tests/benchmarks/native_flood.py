"""Compares how long a cell takes that writes much native text at once, in bare and guarded kernels:

    python -m tests.benchmarks.native_flood --repeat N [--megabytes M] [--json]

Each pair runs one cell in a bare kernel and the same cell in a guarded kernel. Printed: the median seconds until the kernel
is idle again, and the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.kernel.rig import GuardedKernel, guarded_kernel

MEBIBYTE = 1 << 20
SWITCH = {"bare": {"TFGUARD_DISABLE": "1"}, "guarded": {}}
# Lines of 100 bytes, 64 KiB a write.
CELL = """
import os
block = (b"x" * 99 + b"\\n") * 655
left = {size}
while left > 0:
    left -= os.write(2, block)
"""


def seconds(kernel: GuardedKernel, size: int) -> float:
    """Seconds from the request until the kernel is idle."""
    begun = time.monotonic()
    kernel.finish(kernel.send(CELL.format(size=size)), timeout=600, quiet_seconds=0.0)
    return time.monotonic() - begun


def measure(repeat: int, size: int) -> dict[str, list[float]]:
    """Seconds of every run by kind of kernel; the kinds take turns."""
    found: dict[str, list[float]] = {"bare": [], "guarded": []}
    for number in range(repeat):
        for kind in tuple(SWITCH)[:: 1 if number % 2 else -1]:
            with (
                tempfile.TemporaryDirectory() as folder,
                guarded_kernel(Path(folder), environment=SWITCH[kind]) as kernel,
            ):
                kernel.run("1")
                found[kind].append(seconds(kernel, size))
    return found


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0].rstrip(":"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = measure(chosen.repeat, chosen.megabytes * MEBIBYTE)
    ratios = [guarded / bare for bare, guarded in zip(*found.values(), strict=True)]
    answer = {kind: statistics.median(values) for kind, values in found.items()}
    answer |= {"ratio": statistics.median(ratios), "highest_ratio": max(ratios)}
    if chosen.json:
        print(json.dumps(answer | {"runs": found}))
    else:
        print(", ".join(f"{name} {value:.2f}" for name, value in answer.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
