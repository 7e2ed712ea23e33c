"""What a user of each client learns of a kernel that dies in it, and where:

    python -m tests.rigs.clients --prefix ENV [--client NAME] [--death NAME]

prints a Markdown table. `ENV` is an environment of its own that has the clients (`pip install papermill nbclient nbconvert
jupyter-console voila jupyter_kernel_gateway`); kernels, and the Jupyter server with the extension, run in this one. Each
kernel is in a memory group of its own. Linux only; needs the right to make memory groups. Run by hand: a death takes about
ten seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient

from jupyter_tfguard.demo.limits import make_limit
from jupyter_tfguard.demo.server import DemoServer
from tests.conftest import private_jupyter
from tests.rigs.waiting import wait_until

LIMIT_BYTES = 500 * 1024**2
CLIENT_SECONDS = 90.0
QUIET_SECONDS = 12.0  # a console never returns after a death
KERNEL = "guarded"
FINE = "print('f' + 'ine')"
NATIVE = "F0000 00:00:1 tensor.cc:1] Check failed: 1 == 2 (1 vs. 2)"
# name: (code, causes that are right, whether its last words must be in the report)
DEATHS = {
    "memory limit": (
        "import numpy, time\nheld = []\nwhile True:\n"
        "    held.append(numpy.ones(4_000_000))\n    time.sleep(0.02)",
        ("cgroup_oom",),
        "",
    ),
    "SIGKILL": (
        "import subprocess, time, os\nsubprocess.Popen(['sh', '-c', f'sleep 1; kill -9 {os.getpid()}'])\ntime.sleep(60)",
        ("sigkill_unattributed",),
        "",
    ),
    "SIGSEGV": ("import ctypes\nctypes.string_at(0)", ("segfault_native",), ""),
    "abort": (
        f"import os\nos.write(2, b'{NATIVE}\\n')\nos.abort()",
        ("tf_check_failed",),
        "Check failed",
    ),
    "exit code 3": ("import os\nos._exit(3)", ("sys_exit",), ""),
}


@dataclass
class Learned:
    """What a client and its user see: of the death, and of the next kernel of the notebook."""

    client: str
    next_kernel: str = ""


class Place:
    """A private home, a kernel in a memory group, and a notebook."""

    def __init__(self, home: Path, prefix: Path, code: str) -> None:
        self.home, self.prefix, self.code = home, prefix, code
        self.work = home / "work"
        for folder in (self.work, home / "config"):
            folder.mkdir(parents=True)
        (home / "config" / "jupyter_tfguard_config.json").write_text(
            json.dumps({"TfGuard": {"stop": "off"}})
        )
        self.limit = make_limit(LIMIT_BYTES)
        kernels = home / "data" / "kernels" / KERNEL
        kernels.mkdir(parents=True)
        group = Path(getattr(self.limit, "folder")) / "cgroup.procs"  # noqa: B009
        start = f"echo $$ > {group}; exec {sys.executable} -m ipykernel_launcher -f $0"
        spec = {"argv": ["sh", "-c", start, "{connection_file}"], "language": "python"}
        (kernels / "kernel.json").write_text(json.dumps(spec | {"display_name": KERNEL}))
        self.notebook = self.write([code])

    def write(self, cells: list[str]) -> Path:
        """Write the notebook, over an earlier one."""
        found = [
            {"cell_type": "code", "execution_count": None, "id": f"c{i}", "metadata": {}}
            | {"outputs": [], "source": cell}
            for i, cell in enumerate(cells)
        ]
        spec = {"display_name": KERNEL, "language": "python", "name": KERNEL}
        content = {"cells": found, "metadata": {"kernelspec": spec}, "nbformat": 4}
        path = self.work / "train.ipynb"
        path.write_text(json.dumps(content | {"nbformat_minor": 5}))
        return path

    def program(self, *command: str, given: str | None = None) -> subprocess.Popen[str]:
        """A program of the clients' environment."""
        return subprocess.Popen(
            [str(self.prefix / "bin" / command[0]), *command[1:]],
            cwd=self.work,
            stdin=subprocess.PIPE if given is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def _batch(*command: str, output: str) -> Callable[[Place], Learned]:
    def run(place: Place) -> Learned:
        def once() -> str:
            process = place.program(*command)
            said, _ = process.communicate(timeout=CLIENT_SECONDS)
            return f"exit {process.returncode}; {_last_line(said)}"

        died = once()
        place.write([FINE])
        once()
        return Learned(died, _outputs(place.work / output))

    return run


def _console(place: Place) -> Learned:
    def once(code: str) -> str:
        command = ("jupyter-console", "--kernel", KERNEL, "--simple-prompt")
        process = place.program(*command, given="")
        with contextlib.suppress(subprocess.TimeoutExpired):
            lines = f"exec({code!r})\n" if "\n" in code else f"{code}\n"
            process.communicate(lines, timeout=QUIET_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return said

    died = once(place.code)
    return Learned(_last_line(died) or "nothing", _notice(once(FINE)))


def _voila(place: Place) -> Learned:
    def once() -> str:
        port = _free_port()
        process = place.program("voila", "--no-browser", f"--port={port}", str(place.notebook))
        try:
            return _page(f"http://127.0.0.1:{port}/")
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()

    died = once()
    place.write([FINE])
    return Learned(_last_line(died), _notice(once()))


def _gateway(place: Place) -> Learned:
    port, runtime = _free_port(), place.home / "runtime"
    options = (f"--port={port}", "--ip=127.0.0.1")
    with _environment(JUPYTER_RUNTIME_DIR=str(runtime)):
        process = place.program("jupyter-kernelgateway", *options)
    url = f"http://127.0.0.1:{port}/api/kernels"
    try:
        # As JupyterLab sends it.
        body = {"name": KERNEL, "env": {"KERNEL_USERNAME": "ann"}}
        kernel = wait_until(lambda: _ask(url, body), "the gateway")
        file = runtime / f"kernel-{kernel['id']}.json"
        _cell(file, place.code, reply=False)
        time.sleep(QUIET_SECONDS)
        seen = _ask(url)
        state = seen["execution_state"] if seen else "gone"
        said = _cell(file, FINE, reply=True)
        return Learned(f"the kernel is {state}", _notice(said))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


def _server(place: Place) -> Learned:
    server = DemoServer(place.work, lab=False)
    try:
        session = server.start_session(place.notebook, KERNEL)
        kernel = str(session["kernel"]["id"])
        file = server.runtime / f"kernel-{kernel}.json"
        wait_until(lambda: server.kernel_pid(kernel), "a watched kernel")
        _cell(file, place.code, reply=False)
        report = wait_until(lambda: server.report_of(kernel) or {}, "the report")
        return Learned(f"page: {report['short_title']}", _notice(_cell(file, FINE, reply=True)))
    finally:
        server.stop()


CLIENTS: dict[str, Callable[[Place], Learned]] = {
    "papermill": _batch("papermill", "train.ipynb", "out.ipynb", output="out.ipynb"),
    "nbclient": _batch("jupyter-execute", "--output=out.ipynb", "train.ipynb", output="out.ipynb"),
    "nbconvert": _batch(
        "jupyter-nbconvert",
        *("--execute", "--to=notebook", "--output=out.ipynb", "train.ipynb"),
        output="out.ipynb",
    ),
    "console": _console,
    "voila": _voila,
    "gateway": _gateway,
    "server": _server,
}


def _cell(file: Path, code: str, *, reply: bool) -> str:
    """Run a cell; what it printed."""
    client = BlockingKernelClient()
    wait_until(file.exists, "the connection file")
    client.load_connection_file(str(file))
    client.start_channels(hb=False)
    said: list[str] = []
    try:
        client.wait_for_ready(timeout=CLIENT_SECONDS)
        if not reply:
            client.execute(code)
            return ""
        hook: Callable[[Any], None] = lambda m: said.append(m["content"].get("text", ""))  # noqa: E731
        client.execute_interactive(code, output_hook=hook, timeout=CLIENT_SECONDS)
    finally:
        client.stop_channels()
    return "".join(said)


def _ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data)) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError):
        return None


def _page(url: str) -> str:
    def read() -> str:
        try:
            with urllib.request.urlopen(url, timeout=CLIENT_SECONDS) as answer:
                return _until_quiet(answer)
        except urllib.error.HTTPError as failed:
            return f"{failed.code}: {failed.read().decode()}"
        except OSError:
            return ""

    text = re.sub(r"<(script|style).*?</\1>", "", wait_until(read, "the page"), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def _until_quiet(answer: HTTPResponse) -> str:
    """The page. Voila waits without end for a cell whose kernel its restarter replaced first; it keeps the page alive."""
    found, ends = b"", time.monotonic() + CLIENT_SECONDS
    while part := answer.read1(65536):
        found += part
        if time.monotonic() > ends:
            return found.decode() + "\nthe page never ends"
    return found.decode()


def _outputs(notebook: Path) -> str:
    try:
        cells = json.loads(notebook.read_text())["cells"]
    except (OSError, ValueError):
        return "no output"
    found = ["".join(o.get("text", "")) for c in cells for o in c.get("outputs", ())]
    return _notice("".join(found))


def _notice(said: str) -> str:
    return next((line for line in said.splitlines() if "tfguard" in line), "no notice")


def _last_line(said: str) -> str:
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def _environment(**more: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _why() -> dict[str, Any]:
    """The answer of ``jupyter tfguard why`` on the host."""
    command = [sys.executable, "-m", "jupyter_tfguard", "why", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "null")
    return found if isinstance(found, dict) else {}


def judge(death: str, report: dict[str, Any]) -> str:
    """``right``, ``right, without the last words``, ``unknown``, ``wrong`` or ``nothing``."""
    _, causes, words = DEATHS[death]
    if not report:
        return "nothing"
    if report["cause"] not in causes:
        return "unknown" if report["cause"] == "unknown" else "wrong"
    shown = words in json.dumps(report)
    return "right" if shown else "right, without the last words"


def row(client: str, death: str, prefix: Path) -> str:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with private_jupyter(home):
            place = Place(home, prefix, DEATHS[death][0])
            try:
                learned = CLIENTS[client](place)
                report = _why()
            finally:
                place.limit.remove()
    why = f"{report.get('cause')}, {report.get('confidence')}: {report.get('title')}"
    parts = (client, death, learned.client, learned.next_kernel, why if report else "no crash")
    cells = [part.replace("|", "/")[:160] for part in (*parts, judge(death, report))]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--client", choices=CLIENTS)
    parser.add_argument("--death", choices=DEATHS)
    chosen = parser.parse_args()
    print("| client | death | the client says | the next kernel says | `why` | judged |")
    print("|---|---|---|---|---|---|")
    for client in [chosen.client] if chosen.client else CLIENTS:
        for death in [chosen.death] if chosen.death else DEATHS:
            try:
                print(row(client, death, chosen.prefix), flush=True)
            except Exception as failed:
                print(f"| {client} | {death} | rig: {failed!r:.300} | | | |", flush=True)


if __name__ == "__main__":
    main()
