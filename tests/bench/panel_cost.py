"""What the panel costs the page: ``python -m tests.bench.panel_cost --peer-python PYTHON [--quick] [--only CASE]``.

The share of the main thread in windows of 20 s while the kernel of the notebook is busy, by turns in one page: neither
extension shown, our panel (numbers at 10 Hz), our panel in a page that is hidden, and "Machine Resources" of
jupyterlab-nvdashboard at its default of 10 Hz, once in a sidebar as wide as ours and once in the main area, where it opens.

PYTHON is that of an environment which has jupyterlab-nvdashboard beside JupyterLab and this package.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from tests.bench.bench import Bench, Rows, paired
from tests.bench.panel_page import Measured, beside_ours, busy_page, wait
from tests.browser.conftest import command

WINDOW_SECONDS = 20.0
SETTLE_MS = 5_000
PEER = "machine-resource-widget"
NONE, OURS, HIDDEN = "neither", "ours", "ours, page hidden"
PEER_SIDE, PEER_MAIN = "nvdashboard, sidebar", "nvdashboard, main area"
CASES = (NONE, OURS, HIDDEN, PEER_SIDE, PEER_MAIN)

OPEN_PEER = """async ([id, area]) => {
    const { commands, shell } = window.jupyterapp;
    const open = commands.listCommands().find(c => commands.label(c) === 'Open GPU Dashboard Widget');
    await commands.execute(open, { id, title: 'Machine Resources' });
    const widget = [...shell.widgets('main')].find(w => w.id === id);
    if (area === 'right') {
        shell.add(widget, 'right');
        shell.activateById(id);
    }
}"""
_CLOSE_PEER = """id => {
    const { shell } = window.jupyterapp;
    for (const area of ['main', 'right']) {
        for (const widget of [...shell.widgets(area)]) {
            if (widget.id === id) {
                widget.dispose();
            }
        }
    }
}"""


def show(measured: Measured, case: str) -> None:
    """Bring the page into the state of a case; the notebook stays open."""
    page = measured.page
    measured.hide(False)
    page.evaluate(_CLOSE_PEER, PEER)
    command(page, "tfguard:open-panel")
    panel = page.locator(".jp-TfGuard-body .u-over")
    if case in (OURS, HIDDEN):
        panel.first.wait_for()
        measured.hide(case == HIDDEN)
        return
    page.evaluate("() => window.jupyterapp.shell.collapseRight()")
    if case in (PEER_SIDE, PEER_MAIN):
        page.evaluate(OPEN_PEER, [PEER, "right" if case == PEER_SIDE else "main"])
        wait(page, "() => document.querySelectorAll('.recharts-surface').length > 3")


def measure(measured: Measured, case: str) -> dict[str, float]:
    """One window of a case."""
    show(measured, case)
    measured.page.wait_for_timeout(SETTLE_MS)
    return measured.window(WINDOW_SECONDS)


def main() -> None:
    """Print the table."""
    bench = Bench(
        "panel_cost",
        "Share of the page's main thread",
        repetitions=4,
        quick_repetitions=1,
        add_arguments=lambda parser: parser.add_argument("--peer-python", default=sys.executable),
    )
    peer: str = bench.options.peer_python
    with busy_page(peer, **beside_ours(peer)) as measured:
        has_peer = measured.page.evaluate(
            "() => window.jupyterapp.commands.listCommands().some(c => c.includes('nvdashboard') || "
            "window.jupyterapp.commands.label(c) === 'Open GPU Dashboard Widget')"
        )
        if not has_peer:
            print("jupyterlab-nvdashboard is not installed there: it is left out", file=sys.stderr)
        cases: dict[str, Callable[[], dict[str, float]]] = {
            case: functools.partial(measure, measured, case)
            for case in (CASES if has_peer else CASES[:3])
        }
        rows = bench.run(cases)
    name = "thread_fraction"
    bench.report(
        rows,
        {
            "ours / nvdashboard, same width": paired(rows, (OURS, name), (PEER_SIDE, name)),
            "the same, less JupyterLab's own": own_ratios(rows),
            "ours / nvdashboard, main area": paired(rows, (OURS, name), (PEER_MAIN, name)),
        },
    )


def own_ratios(rows: Rows) -> list[float]:
    """The share of ours over that of the peer, each above what the page does without either; one per turn."""
    shares = [[row["thread_fraction"] for row in rows.get(c, ())] for c in (NONE, OURS, PEER_SIDE)]
    return [(ours - none) / (peer - none) for none, ours, peer in zip(*shares, strict=False)]


if __name__ == "__main__":
    main()
