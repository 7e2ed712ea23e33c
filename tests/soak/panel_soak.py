"""A page that stays open: ``python -m tests.soak.panel_soak [--minutes 120] [--turn 60]``.

The panel is open beside a notebook. Turn by turn the kernel is busy, the kernel is idle, the page is hidden, and the machine
sleeps (page and server are stopped). After each turn a line says which sections are drawn, what the page holds and which errors
it had. The exit status is 1 when there was an error, when a section is gone or has stopped working, or when the chart no
longer moves.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import sys
import time
from dataclasses import asdict, dataclass

from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.bench.bench import machine
from tests.bench.panel_page import Measured, busy_page
from tests.browser.conftest import command

TURNS = ("busy", "idle", "hidden", "asleep")
DRAWN_MS = 60_000
_SECTIONS = "[...document.querySelectorAll('.jp-TfGuard-Panel .jp-TfGuard-Section')].map(one => one.className)"
_BROKEN = "document.querySelectorAll('.jp-TfGuard-Panel .jp-mod-error').length"
# What the chart shows, for a screen reader: it holds the newest value.
_PICTURE = "document.querySelector('.jp-TfGuard-HostMemory canvas')?.toDataURL() ?? ''"


@dataclass(frozen=True)
class Seen:
    """What is drawn and held after a turn."""

    turn: str
    minute: float
    sections: list[str]
    stopped_count: int
    is_moving: bool
    heap_bytes: float
    nodes_count: float
    errors_count: int


class Soak:
    """One page, and the errors that it has had so far."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._page = measured.page
        self._tools = self._page.context.new_cdp_session(self._page)
        self.errors: list[str] = []
        self._page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._page.on(
            "console",
            lambda said: (
                self.errors.append(said.text)
                if said.type == "error" and "tfguard" in said.text
                else None
            ),
        )

    def turn(self, name: str, seconds: float) -> None:
        """Spend so long in one state, and come back to a page that is seen."""
        match name:
            case "busy":
                command(self._page, "notebook:run-all-cells")
                self._page.wait_for_timeout(seconds * 1000)
            case "idle":
                command(self._page, "notebook:interrupt-kernel")
                self._page.wait_for_timeout(seconds * 1000)
            case "hidden":
                self._measured.hide(True)
                self._page.wait_for_timeout(seconds * 1000)
                self._measured.hide(False)
            case "asleep":
                self._sleep(seconds)

    def _sleep(self, seconds: float) -> None:
        server = self._measured.server.process
        self._tools.send("Page.setWebLifecycleState", {"state": "frozen"})
        server.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            server.send_signal(signal.SIGCONT)
            self._tools.send("Page.setWebLifecycleState", {"state": "active"})

    def poll(self, turn: str, minute: float) -> Seen:
        """What the page shows now; waits until the chart moves."""
        before = self._page.evaluate(_PICTURE)
        try:
            self._page.wait_for_function(f"({_PICTURE}) !== {json.dumps(before)}", timeout=DRAWN_MS)
            is_moving = True
        except PlaywrightTimeout:
            is_moving = False
        self._measured.collect_garbage()
        numbers = self._measured.numbers()
        names = [name.rpartition("jp-TfGuard-")[2] for name in self._page.evaluate(_SECTIONS)]
        return Seen(
            turn,
            round(minute, 1),
            sections=sorted(names),
            stopped_count=self._page.evaluate(_BROKEN),
            is_moving=is_moving,
            heap_bytes=numbers["JSHeapUsedSize"],
            nodes_count=numbers["Nodes"],
            errors_count=len(self.errors),
        )


def main() -> int:
    """Print a line a turn; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120, help="in all (default: 120)")
    parser.add_argument("--turn", type=float, default=60, help="seconds a turn (default: 60)")
    chosen = parser.parse_args()
    seen: list[Seen] = []
    with busy_page() as measured:
        command(measured.page, "tfguard:open-panel")
        measured.page.locator(".jp-TfGuard-HostMemory canvas").wait_for(timeout=DRAWN_MS)
        soak = Soak(measured)
        began = time.monotonic()
        first = soak.poll("start", 0)
        for name in itertools.cycle(TURNS):
            minute = (time.monotonic() - began) / 60
            if minute > chosen.minutes:
                break
            soak.turn(name, chosen.turn)
            seen.append(soak.poll(name, minute))
            print(json.dumps(asdict(seen[-1])), flush=True)
        errors = soak.errors
    print(json.dumps({"rig": "panel_soak", "errors": errors} | machine()))
    is_whole = all(
        set(first.sections) <= set(now.sections) and now.is_moving and now.stopped_count == 0
        for now in seen
    )
    return int(bool(errors) or not is_whole)


if __name__ == "__main__":
    sys.exit(main())
