"""A real Jupyter server for the demo, with requests for sessions and tfguard's reports."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient

from ..errors import TfGuardError

# A busy machine may take ten times longer than an idle one.
_START_SECONDS = _KERNEL_SECONDS = _ANSWER_SECONDS = 120.0
_END_SECONDS = 30.0
_TRY_SECONDS = 10.0
_GONE = (404, 410)
# The server is on this machine. A proxy would not find it, and would receive its token.
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class DemoServer:
    """A server on the loopback address.

    Args:
        work: Folder of the notebooks, private to the demo.
        lab: Start JupyterLab instead of the bare server.
        python: The interpreter that runs it.
        program: Module of another Jupyter application, such as ``notebook``.
        options: Command-line options.
        before: An ended server in the same folder. The new server uses its port and token.

    Raises:
        TfGuardError: It does not start. The text contains the end of its log.
    """

    def __init__(
        self,
        work: Path,
        *,
        lab: bool,
        python: str = sys.executable,
        program: str | None = None,
        options: Sequence[str] = (),
        before: DemoServer | None = None,
    ) -> None:
        self.work = work
        self.runtime = work / ".runtime"
        if before is not None:
            shutil.rmtree(self.runtime)
        self.runtime.mkdir(mode=0o700, parents=True)
        self.token: str = secrets.token_urlsafe(24) if before is None else before.token
        port = 0 if before is None else urllib.parse.urlsplit(before.url).port
        self._log = (work / ".server.log").open("ab")
        self.url: str = ""
        command = [
            python,
            "-m",
            program or ("jupyterlab" if lab else "jupyter_server"),
            "--no-browser",
            "--ip=127.0.0.1",
            f"--port={port}",
            f"--ServerApp.root_dir={work}",
            *options,
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--allow-root")
        environment = os.environ | {
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "JUPYTER_TOKEN": self.token,
        }
        # TensorFlow's messages at start would hide the reports of the demo.
        environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self) -> None:
        ends = time.monotonic() + _START_SECONDS
        while time.monotonic() < ends:
            if self.process.poll() is not None:
                raise TfGuardError(f"The Jupyter server ended immediately:\n{self.log_tail()}")
            for found in self.runtime.glob("jpserver-*.json"):
                try:
                    self.url = json.loads(found.read_text())["url"]
                    self.get("tfguard/api/status")
                except (OSError, ValueError, KeyError):
                    continue
                return
            time.sleep(0.2)
        raise TfGuardError(
            "The tfguard extension of the Jupyter server does not answer. `jupyter tfguard doctor` shows what is missing. "
            f"The end of the server's log:\n{self.log_tail()}"
        )

    def log_tail(self) -> str:
        """The last lines of the server's log."""
        lines = (self.work / ".server.log").read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-12:])

    def get(self, path: str) -> Any:
        """JSON response of a GET request. Raises OSError."""
        return self.ask("GET", path)

    def write_notebook(self, name: str, cells: Sequence[str] = ()) -> Path:
        """Write a notebook file to the server's folder and return its path."""
        written: list[dict[str, Any]] = [
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"cell-{number}",
                "metadata": {},
                "outputs": [],
                "source": cell,
            }
            for number, cell in enumerate(cells)
        ]
        kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
        content = {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4}
        path = self.work / f"{name}.ipynb"
        path.write_text(json.dumps(content | {"nbformat_minor": 5}))
        return path

    def start_session(self, notebook: Path, kernel_name: str = "python3") -> dict[str, Any]:
        """Start a kernel for a notebook file; returns the session from the server. Raises OSError."""
        body = {
            "path": notebook.relative_to(self.work).as_posix(),
            "name": notebook.name,
            "type": "notebook",
            "kernel": {"name": kernel_name},
        }
        session: dict[str, Any] = self.ask("POST", "api/sessions", body)
        return session

    def end_session(self, session: dict[str, Any]) -> None:
        """Shut the kernel down. Ignores a session that has already ended. Raises OSError."""
        ends = time.monotonic() + _END_SECONDS
        while True:
            try:
                self.ask("DELETE", f"api/sessions/{session['id']}")
                return
            except urllib.error.HTTPError as refused:
                refused.close()
                if refused.code in _GONE:
                    return
                # While a dead kernel restarts, the manager of jupyter_client (still in 8.10) fails to shut it down.
                if time.monotonic() > ends:
                    raise
            time.sleep(0.1)

    def kernel_pid(self, kernel_id: str) -> int | None:
        """Process id of a kernel; None while the watcher does not know it."""
        for kernel in self.get("tfguard/api/status")["kernels"]:
            if kernel["kernel_id"] == kernel_id and kernel["pid"]:
                return int(kernel["pid"])
        return None

    def connect(self, kernel_id: str) -> BlockingKernelClient:
        """A client of a kernel that responds. Call ``stop_channels`` to stop the client.

        Raises:
            TfGuardError: It does not answer in time. The text contains the end of the server's log.
        """
        ends = time.monotonic() + _KERNEL_SECONDS
        while True:
            client = BlockingKernelClient()
            client.load_connection_file(str(self.runtime / f"kernel-{kernel_id}.json"))
            # Another program may have taken a port between the server's choice and the kernel's start. Without the
            # heartbeat's port, the kernel runs and answers. Without another, the server starts it again with new ports.
            client.start_channels(hb=False)
            try:
                client.wait_for_ready(timeout=_TRY_SECONDS)
            except RuntimeError as silent:
                client.stop_channels()
                if time.monotonic() > ends:
                    raise TfGuardError(
                        f"The kernel did not answer within {_KERNEL_SECONDS:g} seconds. "
                        f"The end of the server's log:\n{self.log_tail()}"
                    ) from silent
            else:
                return client

    def report_of(self, kernel_id: str) -> dict[str, Any] | None:
        """The newest report of a crash of this kernel; None while there is none."""
        for entry in self.get("tfguard/api/crashes")["crashes"]:
            if entry["kernel_id"] == kernel_id and not entry["kernel_alive"]:
                report: dict[str, Any] = self.get(f"tfguard/api/crashes/{entry['id']}")
                return report
        return None

    def mark_read(self, report: dict[str, Any]) -> None:
        """Mark the report as read. Raises OSError."""
        self.ask("POST", f"tfguard/api/crashes/{report['id']}/read", {})

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """JSON response of a request. Raises OSError, the base class of urllib's errors."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"token {self.token}")
        data = None if body is None else json.dumps(body).encode()
        with _DIRECTLY.open(request, data, timeout=_ANSWER_SECONDS) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def stop(self) -> None:
        """End the server and its kernels."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()
