"""What each tool costs: fits with the tool and without it by turns, a panel that is open, and the start of a kernel.

A fit is measured in one kernel, again and again with the tool at work and with nothing: there the server is stopped
(SIGSTOP), so that neither it nor the page does anything, and our guard is unloaded. Two kernels of the same program differ by
some per cent; one does not. The model is that of ``step_cost.py``, the page's figures are those of ``panel_page.py``, the start
of a kernel is that of ``kernel_start.py``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from jupyter_client.blocking import BlockingKernelClient
from playwright.sync_api import sync_playwright

from tests.benchmarks import kernel_start
from tests.benchmarks.panel_page import Measured
from tests.benchmarks.peers.lab import LabServer, LabTool, lab_tools
from tests.benchmarks.step_cost import SETUP, STEPS
from tests.browser.conftest import Lab, launch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FITS = 15
PAIRS = 3
WINDOW_SECONDS = 20.0
KERNEL_STARTS = 5
_SETTLE_SECONDS = 3.0
_CELL_SECONDS = 300
Turn = dict[str, dict[str, Any]]

# What a tool asks or receives for one sample, by address.
_SAMPLES = re.compile(r"kernel_usage/get_usage|nvdashboard/|tfguard/api/stream")
_FIT = f"print(sum(once({STEPS})[0] for _ in range({FITS})))"
# 1 GiB in pages of 4 KiB, as TensorFlow's own buffers have them.
_HOLD = """\
import ctypes, mmap, time
held = mmap.mmap(-1, 1 << 30)
held.madvise(mmap.MADV_NOHUGEPAGE)
_ = ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held)), 1, 1 << 30)
"""
_MEMRAY = f"""
import json, os, sys, tempfile
import memray
{SETUP}
def fits():
    return sum(once({STEPS})[0] for _ in range({FITS}))
fits()  # the first fits of a process are slower
pairs, folder = [], tempfile.mkdtemp()
for number in range({PAIRS}):
    file = os.path.join(folder, str(number))
    def traced():
        with memray.Tracker(file):
            return fits()
    pairs.append((traced(), fits()) if number % 2 else (fits(), traced())[::-1])
written = os.path.getsize(file) / ({STEPS} * {FITS})
print(json.dumps({{"pairs": pairs, "bytes_per_step": written}}))
"""


def measure(ours: str, peers: str, turns: int) -> Iterator[list[Turn]]:
    """All turns so far, after each turn; each by tool."""
    found: list[Turn] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as cache:
        kernel_start.start(Path(cache), guarded=True)  # fills the cache
        for number in range(turns):
            browser = launch(playwright)
            tools = lab_tools(ours, peers)
            order = tools[number % len(tools) :] + tools[: number % len(tools)]
            turn: Turn = {tool.name: _visit(tool, browser, number) for tool in order}
            turn["memray"] = _memray(peers)
            turn["kernel start"] = {"pairs": [_starts(Path(cache)) for _ in range(KERNEL_STARTS)]}
            browser.close()
            found.append(turn)
            print(f"turn {number + 1} of {turns}: {json.dumps(turn)}", flush=True)
            yield found


def _starts(cache: Path) -> tuple[float, float]:
    """Seconds of a kernel's start, guarded and bare."""
    guarded, bare = (kernel_start.start(cache, guarded=guarded) for guarded in (True, False))
    return guarded["kernel_start_seconds"], bare["kernel_start_seconds"]


def _memray(python: str) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-c", _MEMRAY],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "1"},
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


class _Cells:
    """Runs cells of a kernel past the server."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self.client = client

    def run(self, code: str) -> str:
        """What the cell printed."""
        printed: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])

        reply = self.client.execute_interactive(
            code, allow_stdin=False, output_hook=keep, timeout=_CELL_SECONDS
        )
        if reply["content"]["status"] != "ok":
            raise RuntimeError(f"{reply['content']['ename']}: {reply['content']['evalue']}")
        return "".join(printed)


def _visit(tool: LabTool, browser: Browser, number: int) -> dict[str, Any]:
    """One server, kernel and page: fits by turns, then a window in which the kernel holds memory and sleeps."""
    with tempfile.TemporaryDirectory() as name, tool.server(Path(name), tool.python) as server:
        notebook = server.write_notebook("costs", [""])
        session = server.start_session(notebook)
        cells = _Cells(server.connect(session["kernel"]["id"]))
        seen: list[float] = []
        page = Lab(server, browser).open(notebook, prepare=lambda made: _count(made, seen))
        try:
            tool.show(page)
            cells.run(SETUP)
            cells.run(_FIT)  # the first fits of a process are slower
            pid = int(cells.run("import os; print(os.getpid())"))
            pairs = [
                _pair(tool, server, cells, on_first=(number + n) % 2 == 0) for n in range(PAIRS)
            ]
            cells.run(_HOLD)
            cells.client.execute("time.sleep(600)")
            page.wait_for_timeout(1000 * _SETTLE_SECONDS)
            return {"pairs": pairs} | _window(Measured(page, server), pid, seen)
        finally:
            cells.client.stop_channels()
            page.context.close()
            server.end_session(session)


def _pair(
    tool: LabTool, server: LabServer, cells: _Cells, *, on_first: bool
) -> tuple[float, float]:
    """Seconds of the same fits with the tool at work, and with nothing."""
    seconds = {}
    for on in (on_first, not on_first):
        server.process.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
        try:
            if tool.is_tfguard:
                cells.run("%load_ext tfguard" if on else "%unload_ext tfguard")
            time.sleep(_SETTLE_SECONDS)
            seconds[on] = float(cells.run(_FIT).split()[-1])
        finally:
            server.process.send_signal(signal.SIGCONT)
    if tool.is_tfguard:
        cells.run("%load_ext tfguard")
    return seconds[True], seconds[False]


def _count(page: Page, seen: list[float]) -> None:
    def note(*_: object) -> None:
        seen.append(time.monotonic())

    page.on("request", lambda request: note() if _SAMPLES.search(request.url) else None)
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", note) if _SAMPLES.search(socket.url) else None,
    )


def _window(measured: Measured, kernel: int, seen: list[float]) -> dict[str, float]:
    """Fractions of a core that page, server and kernel take, and samples per second."""
    before, began = _processor(measured.server.process.pid, kernel), time.monotonic()
    page = measured.window(WINDOW_SECONDS)
    after, span = _processor(measured.server.process.pid, kernel), time.monotonic() - began
    return {
        "page_fraction": page["thread_fraction"],
        "server_fraction": (after[0] - before[0]) / span,
        "kernel_fraction": (after[1] - before[1]) / span,
        "samples_per_second": sum(at >= began for at in seen) / span,
    }


def _processor(server: int, kernel: int) -> tuple[float, float]:
    """Processor seconds so far: of the server with its helpers, and of the kernel."""
    below = {child.pid for child in psutil.Process(kernel).children(recursive=True)} | {kernel}
    helpers = [c.pid for c in psutil.Process(server).children(recursive=True) if c.pid not in below]
    return sum(map(_clock, (server, *helpers))), _clock(kernel)


def _clock(pid: int) -> float:
    """Processor seconds of all threads. Source: clock_getcpuclockid(3), Linux."""
    return time.clock_gettime(~pid << 3 | 2)
