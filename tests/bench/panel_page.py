"""A JupyterLab page for the benchmarks of the panel: what its main thread does and what it holds, as Chromium tells it."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from jupyter_tfguard.demo.server import DemoServer
from tests.browser.conftest import Lab, lab_server, launch, run

BUSY = """\
import time
held = []
while True:
    held.append(bytearray(200_000))
    if len(held) > 2_000:
        held.clear()
    time.sleep(0.02)
"""


class Measured:
    """A page, and the channel by which Chromium tells of it."""

    def __init__(self, page: Page, server: DemoServer) -> None:
        self.page = page
        self.server = server
        self._tools = page.context.new_cdp_session(page)
        # Processor time of the main thread: what else the machine does is not counted.
        self._tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._tools.send("HeapProfiler.enable")
        self._messages = 0
        self._tools.on("Network.webSocketFrameReceived", self._count)
        self._tools.send("Network.enable")

    def _count(self, told: dict[str, Any]) -> None:
        content = told["response"]["payloadData"][-200:] + told["response"]["payloadData"][:200]
        self._messages += '"type": "tick"' in content or '"type": "number"' in content

    def numbers(self) -> dict[str, float]:
        """Chromium's counters by name; durations in seconds of processor time since the page began."""
        told = self._tools.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in told}

    def collect_garbage(self) -> None:
        """Until nothing more goes."""
        for _ in range(3):
            self._tools.send("HeapProfiler.collectGarbage")

    def hide(self, hidden: bool) -> None:
        """Let the page believe that another tab is in front: a browser without a screen has none."""
        self.page.evaluate(
            """hidden => {
                Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
                const state = hidden ? 'hidden' : 'visible';
                Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => state });
                document.dispatchEvent(new Event('visibilitychange'));
            }""",
            hidden,
        )

    def window(self, seconds: float) -> dict[str, float]:
        """What the main thread does in so long, as fractions of it; and how often our server spoke to the page."""
        before, messages, began = self.numbers(), self._messages, time.monotonic()
        self.page.wait_for_timeout(seconds * 1000)
        after, span = self.numbers(), time.monotonic() - began
        names = {
            "thread": "TaskDuration",
            "scripts": "ScriptDuration",
            "layout": "LayoutDuration",
            "style": "RecalcStyleDuration",
        }
        return {
            f"{ours}_fraction": (after[theirs] - before[theirs]) / span
            for ours, theirs in names.items()
        } | {"messages_hertz": (self._messages - messages) / span}


@contextlib.contextmanager
def busy_page(python: str = sys.executable, **environment: Path) -> Iterator[Measured]:
    """A notebook whose kernel is busy, in a window of a person's size.

    Args:
        python: The interpreter that runs the server.
        environment: More variables for it.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        lab_server(Path(name), python=python, **environment) as server,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        lab = Lab(server, browser)
        page = lab.open(lab.notebook("busy", BUSY))
        run(page)
        page.wait_for_selector(".jp-StatusBar-Widget >> text=/\\| Busy/", timeout=60_000)
        yield Measured(page, server)
        browser.close()


def beside_ours(python: str) -> dict[str, Path]:
    """Variables by which a server of another environment finds what is installed in this one."""
    here, other = Path(sys.prefix), Path(python).parents[1]
    if here == other:
        return {}
    found = {}
    for name, inner in (("JUPYTER_PATH", "share/jupyter"), ("JUPYTER_CONFIG_PATH", "etc/jupyter")):
        known = os.environ.get(name)
        found[name] = Path(os.pathsep.join(filter(None, (known, str(here / inner)))))
    return found


def wait(page: Page, expression: str, seconds: float = 20.0) -> Any:
    """Until a JavaScript expression is true."""
    ends = time.monotonic() + seconds
    while not (found := page.evaluate(expression)):
        if time.monotonic() > ends:
            raise TimeoutError(expression)
        page.wait_for_timeout(100)
    return found
