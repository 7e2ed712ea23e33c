"""What the page holds after a long stream: ``python -m tests.benchmarks.panel_heap [--minutes 30] [--json]``.

The panel streams at 10 Hz from a busy kernel. After each minute garbage is collected, and heap, nodes and listeners are
counted. The first minute is for JupyterLab to settle, and for the chart to have all its points.
"""

from __future__ import annotations

import argparse
import json
import sys

from tests.benchmarks.bench import machine
from tests.benchmarks.panel_page import busy_page
from tests.browser.conftest import command

LIMIT_BYTES = 5_000_000
COUNTERS = {"heap_bytes": "JSHeapUsedSize", "nodes": "Nodes", "listeners": "JSEventListeners"}


def main() -> int:
    """Print a row a minute; 1 when the heap grew by more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=30, help="after the first (default: 30)")
    parser.add_argument("--json", action="store_true", help="figures only")
    chosen = parser.parse_args()
    rows: list[dict[str, float]] = []
    with busy_page() as measured:
        command(measured.page, "tfguard:open-panel")
        measured.page.locator(".jp-TfGuard-body .u-over").first.wait_for()
        for minute in range(chosen.minutes + 1):
            measured.page.wait_for_timeout(60_000)
            measured.collect_garbage()
            told = measured.numbers()
            rows.append({"minute": minute} | {ours: told[name] for ours, name in COUNTERS.items()})
            if not chosen.json:
                print(
                    "  ".join(f"{name} {value:,.0f}" for name, value in rows[-1].items()),
                    flush=True,
                )
    growth = {f"{name}_growth": rows[-1][name] - rows[0][name] for name in COUNTERS}
    found = {"benchmark": "panel_heap", "minutes": chosen.minutes} | growth | machine()
    print(json.dumps(found | {"rows": rows}) if chosen.json else found)
    return int(growth["heap_bytes_growth"] > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
