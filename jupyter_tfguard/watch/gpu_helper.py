"""The process that reads the GPUs, started and given up from here: NVML may hang or crash, a server may not."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..shield import note_problem

SILENCE_SECONDS = 2.0
START_SECONDS = 10.0  # the driver of an idle machine with several GPUs takes seconds to wake up
RESTART_PAUSES_SECONDS = (5.0, 30.0, 120.0)
_LINE_LIMIT_BYTES = 1 << 20
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Gpus:
    """What is known of the GPUs now.

    Attributes:
        state: ``starting``, ``ok``, ``none`` or ``unavailable``.
        reason: Why not ``ok``, for people.
        devices: As :mod:`~..collectors.gpu` prints them.
    """

    state: str
    reason: str | None = None
    devices: tuple[dict[str, Any], ...] = ()


class GpuHelper:
    """Runs the helper from the first :meth:`want` on, and restarts it a few times when it fails.

    Args:
        pauses_seconds: Waits before each restart.
        start_seconds: How long the first line may take. silence_seconds: how long each further one.
    """

    def __init__(
        self,
        *,
        pauses_seconds: tuple[float, ...] = RESTART_PAUSES_SECONDS,
        start_seconds: float = START_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._pauses = list(pauses_seconds)
        self._start_seconds = start_seconds
        self._silence_seconds = silence_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._state = Gpus("starting")
        self._deadline = 0.0
        self._restart_at: float | None = None
        self._finished = False
        self._lock = threading.RLock()

    def want(self) -> None:
        """Start the helper if it is needed, and give it up if it has been silent. To be called about once a second."""
        with self._lock:
            if self._finished:
                return
            now = time.monotonic()
            if self._process is None:
                if self._restart_at is None or now >= self._restart_at:
                    self._start(now)
            elif now > self._deadline:
                self._fail("The NVIDIA driver library (NVML) does not answer", now)

    def read(self) -> Gpus:
        """What is known now."""
        return self._state

    def _start(self, now: float) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyter_tfguard.collectors.gpu"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # -m puts the current folder first on the path: not the notebooks', where a file may be called json.py.
                cwd=_PACKAGE_PARENT,
            )
        except OSError as bad:
            self._finished = True
            self._state = Gpus("unavailable", f"The GPU reader cannot be started: {bad.strerror}")
            note_problem("starting the GPU reader", bad)
            return
        self._deadline = now + self._start_seconds
        threading.Thread(
            target=self._read_lines, args=(self._process,), name="tfguard-gpus", daemon=True
        ).start()

    def _read_lines(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # closed under the reader
            while line := process.stdout.readline(_LINE_LIMIT_BYTES):
                self._take(process, line)
        with self._lock:
            if process is self._process:
                self._fail("The NVIDIA driver library (NVML) crashed", time.monotonic())

    def _take(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        try:
            told = json.loads(line)
            found = Gpus(str(told["state"]), told["reason"], tuple(told["devices"]))
        except (ValueError, KeyError, TypeError):
            return  # a library that prints on its own
        with self._lock:
            if process is not self._process:
                return
            self._state = found
            self._deadline = time.monotonic() + self._silence_seconds
            if found.state != "ok":  # it has said all there is to say
                self._finished = True
                self._end_process()

    def _fail(self, reason: str, now: float) -> None:
        self._end_process()
        self._state = Gpus("unavailable", reason)
        if self._pauses:
            self._restart_at = now + self._pauses.pop(0)
            return
        self._finished = True
        note_problem("reading the GPUs", reason, fix="nvidia-smi shows whether the driver works.")

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.kill()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        # A process stuck inside the driver does not even take SIGKILL: it is waited for by nobody's loop.
        threading.Thread(
            target=_reap, args=(process,), name="tfguard-gpus-end", daemon=True
        ).start()

    def stop(self) -> None:
        """End the helper for good."""
        with self._lock:
            self._finished = True
            process = self._process
            self._end_process()
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    if process.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            process.stdout.close()
