"""Processes of trials: one imports TensorFlow, and forks for each trial, which so begins at once.

It imports TensorFlow and does nothing with it, so that no thread of TensorFlow runs yet: a fork is safe. Where it is not, or not
known to be (on a GPU, or if an import started threads), each trial has a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from ...collectors.resident import anonymous_bytes
from ...errors import SourceUnavailable
from ..own_memory import uses_gpu

_CHILD = Path(__file__).with_name("trial_child.py")
_MESSAGE_BYTES = 1 << 16
_ON_CPU = {"CUDA_VISIBLE_DEVICES": "-1"}
# The child must leave the rest of the card to this process. Its limit stands in a message of the lowest level.
_ON_GPU = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "0"}


class TrialProcess:
    """A process that starts trials. Close it after use.

    Attributes:
        pid: Process id of the trial that runs; None if none does.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._is_ready = False

    def prepare(self) -> None:
        """Start it, so that it imports TensorFlow meanwhile. Returns at once."""
        if self._process is not None:
            return
        on_gpu = uses_gpu()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_CHILD), str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=os.environ | (_ON_GPU if on_gpu else _ON_CPU),
                start_new_session=True,  # Jupyter sends an interrupt to the whole process group
            )
        with contextlib.suppress(OSError):  # it has ended: the next call sees it
            self._socket.send(json.dumps({"path": sys.path, "may_fork": not on_gpu}).encode())

    def begin(self, file: int, writer: int, timeout_seconds: float) -> str:
        """Start a trial, once TensorFlow is imported. Returns the error if it could not be imported, else nothing.

        Args:
            file: Descriptor of the file that the trial reads.
            writer: Descriptor of the pipe that it writes to.
            timeout_seconds: How long to wait.

        Raises:
            TimeoutError: It took longer.
        """
        self.prepare()
        assert self._socket is not None
        self._socket.settimeout(timeout_seconds)
        if error := self._wait_until_ready():
            return error
        try:
            socket.send_fds(self._socket, [b"begin"], [file, writer])
        except OSError as bad:
            return f"The process of the trials has ended: {bad}"
        found = self._receive()
        self.pid = found.get("pid")
        return "" if self.pid else "The process of the trials has ended"

    def end(self) -> int:
        """Kill the trial if it still runs; returns its status, as ``Popen.returncode`` has it."""
        process, connection = self._process, self._socket
        assert process is not None
        assert connection is not None
        assert self.pid is not None
        pid, self.pid = self.pid, None
        # It is not waited for until it is said to: the process id cannot be that of another process.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if pid != process.pid:
            connection.settimeout(None)
            with contextlib.suppress(OSError):
                connection.send(b"wait")
            if (status := self._receive().get("status")) is not None:
                return int(status)
        status = process.wait()
        self.close()
        return status

    def own_bytes(self) -> int:
        """Anonymous memory that it holds while no trial runs; 0 before it has started."""
        if self._process is None or self._wait_until_ready():
            return 0
        with contextlib.suppress(SourceUnavailable):
            return anonymous_bytes(self._process.pid)
        return 0

    def close(self) -> None:
        """Kill it, with its trial, and wait for its end; idempotent."""
        if self.pid is not None:
            self.end()
        process, connection = self._process, self._socket
        self._process = self._socket = None
        self._is_ready = False
        if process is not None:
            process.kill()
            process.wait()
        if connection is not None:
            connection.close()

    def _wait_until_ready(self) -> str:
        if not self._is_ready:
            found = self._receive()
            if not found:
                return "The process of the trials ended while it imported TensorFlow"
            if "error" in found:
                return str(found["error"])
            self._is_ready = True
        return ""

    def _receive(self) -> dict[str, Any]:
        """The next message; empty if it has ended."""
        assert self._socket is not None
        try:
            found: dict[str, Any] = json.loads(self._socket.recv(_MESSAGE_BYTES) or b"{}")
        except ConnectionError:
            return {}
        return found
