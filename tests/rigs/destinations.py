"""Counts how often the last native text of a crash reaches the terminal or log, and the recording:

    python -m tests.rigs.destinations --count N [--clients NAME ...] [--kinds bare guarded]

Each run starts a client with one notebook, whose cell writes lines and then dies while the GIL is held. The client's stderr is a
pipe, as with ``2>&1 | tee``; that of the server is a file. Printed for each client, kind and death: runs in which each line
arrived exactly once and in order, runs with a line twice, and runs whose recording has all lines. A client that is not
installed is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pexpect

from jupyter_tfguard.demo.server import DemoServer
from jupyter_tfguard.errors import RecordUnreadable
from jupyter_tfguard.record.contents import read_recording
from tests.conftest import without_pytest
from tests.rigs.waiting import wait_until

# An assertion writes its line and aborts in one call.
DEATHS = {
    "abort": "c.__assert_fail(b'LAST words before abort', b'tensor.cc', 607, b'f')",
    "SIGKILL": "c.write(2, b'LAST words before SIGKILL\\n', 26), c.kill(os.getpid(), 9)",
}
CELL = """
import ctypes, os, time
c = ctypes.PyDLL(None)
for number in range(3):
    c.write(2, b"LINE %d\\n" % number, 7)
    time.sleep({pause})
{death}
"""
EXPECTED = ["LINE 0", "LINE 1", "LINE 2", "LAST"]
# Some times are near the moments at which text is forwarded.
PAUSES = (0.0, 0.014, 0.016, 0.018, 0.1)
SECONDS = 120.0
WAIT_SECONDS = 15.0
HELD_SECONDS = 1.0

NBCLIENT = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
try:
    NotebookClient(notebook, extra_arguments=sys.argv[2:]).execute()
except Exception as bad:
    print(type(bad).__name__)
"""


def nbclient(notebook: Path, folder: Path, *extra: str) -> list[str]:
    """Command of nbclient; `extra` are arguments of the kernel."""
    return [sys.executable, "-c", NBCLIENT, str(notebook), *extra]


def papermill(notebook: Path, folder: Path) -> list[str]:
    """Command of papermill."""
    return [
        sys.executable,
        "-m",
        "papermill",
        "--no-progress-bar",
        str(notebook),
        str(folder / "out.ipynb"),
    ]


COMMANDS: dict[str, Callable[..., list[str]]] = {
    "nbclient": nbclient,
    "nbclient, no capture": lambda *where: nbclient(
        *where, "--IPKernelApp.capture_fd_output=False"
    ),
    "papermill": papermill,
}
NEEDS = {"papermill": "papermill", "console": "jupyter_console"}
CLIENTS = (*COMMANDS, "console", "server")


def environment(folder: Path, *, guarded: bool) -> dict[str, str]:
    """Private folders."""
    own = {
        "TFGUARD_DIR": str(folder / "tfguard"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "share"),
    }
    return without_pytest(os.environ) | own | ({} if guarded else {"TFGUARD_DISABLE": "1"})


def judge(text: str) -> dict[str, int]:
    """Whether each line arrived once and in order, whether the last one did, and whether one came twice."""
    found = [
        line.rstrip()[:6] if line.startswith("LINE ") else "LAST"
        for line in text.splitlines()
        if line.startswith("LINE ") or ("LAST words" in line and "tfguard" not in line)
    ]
    return {
        "all": int(found == EXPECTED),
        "last": int("LAST" in found),
        "twice": int(len(set(found)) < len(found)),
    }


def recorded(folder: Path, report_id: str = "") -> int:
    """1 if a recording, or a bundle whose id begins so, has all lines."""

    def texts() -> Iterator[str]:
        for path in (folder / "tfguard").glob("recordings/*"):
            try:
                yield read_recording(path).stderr_tail
            except RecordUnreadable:
                continue
        for path in (folder / "tfguard").glob(f"bundles/{report_id}*/bundle.json*"):
            kernel: dict[str, Any] = json.loads(path.read_text()).get("kernel") or {}
            yield "\n".join(kernel.get("stderr_tail") or [])

    return int(any(judge(text)["all"] for text in texts()))


def played(client: str, folder: Path, cell: str, *, guarded: bool) -> str:
    """Run a client to the end; all text that it and its kernel wrote."""
    notebook = folder / "work.ipynb"
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    made.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(made, notebook)
    done = subprocess.run(
        COMMANDS[client](notebook, folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(folder, guarded=guarded),
        cwd=folder,
        timeout=SECONDS,
        check=False,
    )
    return done.stderr.decode("utf-8", "replace")


def in_console(folder: Path, cell: str, *, guarded: bool) -> str:
    """What a console in a terminal shows."""
    (folder / "cell.py").write_text(cell)
    terminal = pexpect.spawn(
        sys.executable,
        ["-m", "jupyter_console", "--simple-prompt", "--no-confirm-exit"],
        env=environment(folder, guarded=guarded),
        cwd=folder,
        timeout=SECONDS,
        encoding="utf-8",
    )
    terminal.logfile_read = shown = io.StringIO()
    terminal.expect_exact("In [1]:")
    terminal.sendline("%run -i cell.py")
    # The console asks whether to start the kernel again, or shows its prompt.
    with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
        terminal.expect(["estart", "ied"], timeout=WAIT_SECONDS)
        terminal.expect(pexpect.TIMEOUT, timeout=1)
    terminal.close(force=True)
    return shown.getvalue()


class Server:
    """A server, and kernels with and without the guard in it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder
        bare = folder / "share" / "kernels" / "bare"
        bare.mkdir(parents=True)
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": command, "display_name": "bare", "language": "python"}
        (bare / "kernel.json").write_text(json.dumps(spec | {"env": {"TFGUARD_DISABLE": "1"}}))
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(environment(folder, guarded=True))
        try:
            self.server = DemoServer(folder / "work", lab=False)
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.log = folder / "work" / ".server.log"
        self.count = 0

    def play(self, cell: str, *, guarded: bool) -> tuple[str, int]:
        """What the server's log gets, and whether the report has all lines."""
        self.count += 1
        notebook = self.server.write_notebook(f"work{self.count}")
        begun = self.log.stat().st_size
        session = self.server.start_session(notebook, "python3" if guarded else "bare")
        kernel = str(session["kernel"]["id"])
        client = self.server.connect(kernel)
        pid = wait_until(lambda: self.server.kernel_pid(kernel) or 0, "a watched kernel")
        if guarded:
            time.sleep(HELD_SECONDS)  # the watcher reads the header twice a second
        client.execute(cell)
        wait_until(lambda: not Path(f"/proc/{pid}/task/{pid}").exists(), "the end")
        report = wait_until(lambda: self.server.report_of(kernel), "the report")
        client.stop_channels()
        self.server.end_session(session)
        text = self.log.read_bytes()[begun:].decode("utf-8", "replace")
        return text, recorded(self.data, str(report["id"]))


def count(client: str, kind: str, death: str, number: int, server: Server | None) -> dict[str, int]:
    """One run."""
    cell = CELL.format(pause=PAUSES[number % len(PAUSES)], death=DEATHS[death])
    guarded = kind == "guarded"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if server is not None:
            text, kept = server.play(cell, guarded=guarded)
            return judge(text) | {"recorded": kept}
        play = in_console if client == "console" else functools.partial(played, client)
        return judge(play(folder, cell, guarded=guarded)) | {"recorded": recorded(folder)}


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0].rstrip(":"))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=CLIENTS)
    parser.add_argument(
        "--kinds", nargs="+", choices=("bare", "guarded"), default=("bare", "guarded")
    )
    chosen = parser.parse_args()
    for client in chosen.clients:
        if client in NEEDS and importlib.util.find_spec(NEEDS[client]) is None:
            print(f"{client}: not installed")
            continue
        with tempfile.TemporaryDirectory() as name:
            server = Server(Path(name)) if client == "server" else None
            for death, kind in itertools.product(DEATHS, chosen.kinds):
                totals = dict.fromkeys(("all", "last", "twice", "recorded"), 0)
                for number in range(chosen.count):
                    for key, value in count(client, kind, death, number, server).items():
                        totals[key] += value
                print(f"{client}, {death}, {kind}: {totals} of {chosen.count}", flush=True)
            if server is not None:
                server.server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
