"""A million random allocations from eight threads across the edge of the gate, with AddressSanitizer and with ThreadSanitizer.

``python -m tests.soak.gate_soak [--count 1000000] [--seed 1]``. Needs gcc or clang with both sanitizers. Prints one line of JSON for
each build; exits with 1 when a sanitizer, or the marks in the blocks, found an error.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
# Leaks are looked for as well: the hooks must lose no block.
BUILDS = {
    "plain": [],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}


def soak(name: str, count: int, seed: int, folder: Path) -> int:
    """Build and run one variant. Returns its exit status."""
    program = folder / name
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    subprocess.run(
        ["cc", *flags, *BUILDS[name], "-o", program, SOURCE, "-lpthread", "-ldl"], check=True
    )
    files = folder / f"{name}-files"
    files.mkdir()
    # ThreadSanitizer needs the addresses where it expects them.
    fixed = [path, "-R"] if (path := shutil.which("setarch")) else []
    print(f"{name}: ", end="", flush=True)
    return subprocess.run([*fixed, program, files, str(count), str(seed)], check=False).returncode


def main() -> int:
    """Run each build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=BUILDS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = [chosen.only] if chosen.only else list(BUILDS)
        status = [soak(name, chosen.count, chosen.seed, Path(folder)) for name in names]
    return int(any(status))


if __name__ == "__main__":
    sys.exit(main())
