"""Runs the stories in sequence and prints each report as a user sees it."""

from __future__ import annotations

import contextlib
import queue
import shutil
import signal
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient

from ..collectors.host import HostCollector
from ..errors import SourceUnavailable, TfGuardError
from ..report import text
from ..units import GIB, human_bytes, human_seconds
from .limits import LimitedGroup, NoLimitPossible, SystemdScope, make_limit
from .server import DemoServer
from .stories import (
    KILL_9,
    LIMIT_BYTES,
    NULL_POINTER,
    SMALLEST_LIMIT_BYTES,
    XLA_TYPO,
    DemoCrash,
    memory_story,
)

_RULE = "─" * 100
_NOTEBOOK = "walk-through.ipynb"


def run(*, lab: bool) -> int:
    """Run the whole demo.

    Args:
        lab: At the end, keep JupyterLab open with the walk-through notebook until Ctrl-C.

    Returns:
        0 if every crash was explained, else 2.

    Raises:
        TfGuardError: The server does not start.
    """
    work = Path(tempfile.mkdtemp(prefix="tfguard-demo-"))
    # When SIGTERM ends the demo, the server must end too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began = time.monotonic()
    _say(
        "tfguard demo: starts a Jupyter server, crashes real kernels on purpose, and explains each crash."
    )
    _say("This takes a minute or two on 2 cores. Starting the server ...")
    server = None
    try:
        server = DemoServer(work, lab=lab)
        stories = _stories()
        failed = 0
        for number, story in enumerate(stories, 1):
            _say(f"\n{_RULE}\n{number} of {len(stories)}: {story.intro}")
            if not _play(server, story):
                failed += 1
        _say(
            f"\n{_RULE}\n{len(stories) - failed} of {len(stories)} crashes explained in {human_seconds(time.monotonic() - began)}."
        )
        _say("All reports: jupyter tfguard list      One report: jupyter tfguard why ID")
        if lab:
            _stay_open(server)
        return 2 if failed else 0
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(work, ignore_errors=True)


def _stories() -> list[DemoCrash]:
    others = [XLA_TYPO, NULL_POINTER, KILL_9]
    try:
        available = int(HostCollector().collect()["host.available_bytes"])
    except (SourceUnavailable, KeyError):
        available = 0
    # The machine itself must never run out of memory.
    limit = min(LIMIT_BYTES, int(available * 0.7) // (GIB // 4) * (GIB // 4))
    if limit < SMALLEST_LIMIT_BYTES:
        _say(
            f"Only {human_bytes(available)} of memory are free: skipping the crash at a memory limit."
        )
        return others
    try:
        make_limit(limit).remove()
    except NoLimitPossible as no:
        _say(
            f"This machine does not allow setting a memory limit ({no}): showing other real crashes instead."
        )
        return others
    return [memory_story(limit), *others]


def _play(server: DemoServer, story: DemoCrash) -> bool:
    notebook = server.write_notebook(story.name, story.cells)
    session = server.start_session(notebook)
    kernel_id = str(session["kernel"]["id"])
    limit = None
    try:
        limit = _set_limit(server, story, kernel_id)
        ends = time.monotonic() + story.seconds_limit
        _run_cells(server, story, kernel_id, ends)
        report = _wait_for_report(server, kernel_id, ends)
    except NoLimitPossible as no:
        _say(f"Could not set the memory limit: {no}")
        return False
    finally:
        server.end_session(session)
        if limit is not None:
            limit.remove()
    if report is None:
        _say(
            f"No report came within {human_seconds(story.seconds_limit)}. The server's log ends:\n{server.log_tail()}"
        )
        return False
    _say(f"\n{text.render(report)}")
    server.mark_read(report)
    return True


def _set_limit(
    server: DemoServer, story: DemoCrash, kernel_id: str
) -> LimitedGroup | SystemdScope | None:
    if story.limit_bytes is None:
        return None
    limit = make_limit(story.limit_bytes)
    for _ in range(100):
        pid = server.kernel_pid(kernel_id)
        if pid is not None:
            limit.add(pid)
            return limit
        time.sleep(0.1)
    raise TfGuardError(
        "The server never saw the kernel's process. `jupyter tfguard doctor` may show why."
    )


def _run_cells(server: DemoServer, story: DemoCrash, kernel_id: str, ends: float) -> None:
    """Run the cells until one gets no reply: the kernel has crashed, as intended."""
    client = server.connect(kernel_id)
    try:
        for cell in story.cells:
            _say("\n" + "\n".join(f"    {line}" for line in cell.rstrip().splitlines()))
            message = client.execute(cell)
            if not _replied(server, client, message, kernel_id, ends):
                return
    finally:
        client.stop_channels()


def _replied(
    server: DemoServer, client: BlockingKernelClient, message: str, kernel_id: str, ends: float
) -> bool:
    while time.monotonic() < ends:
        with contextlib.suppress(queue.Empty):
            reply = client.get_shell_msg(timeout=1)
            if reply["parent_header"].get("msg_id") == message:
                if reply["content"]["status"] == "error":
                    _say(f"    {reply['content']['ename']}: {reply['content']['evalue']}")
                return True
        if server.report_of(kernel_id) is not None:
            return False
    return False


def _wait_for_report(server: DemoServer, kernel_id: str, ends: float) -> dict[str, Any] | None:
    while time.monotonic() < ends:
        report = server.report_of(kernel_id)
        if report is not None:
            return report
        time.sleep(0.2)
    return None


def _stay_open(server: DemoServer) -> None:
    source = _walk_through()
    shutil.copy(source, server.work / _NOTEBOOK)
    address = f"{server.url}lab/tree/{_NOTEBOOK}?token={server.token}"
    _say(
        f"\nJupyterLab is open on the walk-through notebook; the shield in the right sidebar is the panel.\n\n    {address}\n"
    )
    _say("Press Ctrl-C to stop it.")
    webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):
        server.process.wait()


def _walk_through() -> Path:
    """The walk-through notebook: in this folder in an installed package, in ``notebooks/`` in a checkout."""
    here = Path(__file__).parent
    for path in (here / _NOTEBOOK, here.parents[1] / "notebooks" / _NOTEBOOK):
        if path.is_file():
            return path
    raise TfGuardError(
        "The walk-through notebook is missing from this installation. Reinstall jupyter-tfguard."
    )


def _say(words: str) -> None:
    print(words, flush=True, file=sys.stdout)
