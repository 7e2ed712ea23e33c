"""Starts and stops the helper process that reads the GPUs: NVML may hang or crash, the server must not.

One thread per helper process starts it, reads its lines and waits for it to end. A process that hangs inside the driver
may not react even to SIGKILL. No other helper is started until it is gone, because it would hang in the same place.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...shield import note_problem, shielded

SILENCE_SECONDS = 2.0
START_SECONDS = 20.0  # the driver of an idle machine with eight GPUs needs this long to start
RESTART_SECONDS = 60.0
_EVENTS_SECONDS, _EVENT_LIMIT = 600.0, 100
_LINE_LIMIT_BYTES = 1 << 20
_PACKAGE_PARENT = Path(__file__).resolve().parents[3]
_STUCK = "The NVIDIA driver library (NVML) does not answer, and the process that queried it cannot be killed"


@dataclass(frozen=True)
class Gpus:
    """Current state of the GPUs.

    Attributes:
        state: ``starting``, ``ok``, ``none`` or ``unavailable``.
        reason: Why the state is not ``ok``, as text for users.
        devices: As printed by :mod:`~..collectors.gpu`.
        events: Xid events of the last ten minutes, newest last, at most 100; kept when the process is restarted.
        time: Unix seconds at which `devices` were read; None without devices.
    """

    state: str
    reason: str | None = None
    devices: tuple[dict[str, Any], ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    time: float | None = None


class _HelperRun:
    """One helper process; `process` is None until it has started."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None


class GpuHelper:
    """Runs the helper process from the first :meth:`want`, and restarts it after a failure.

    Args:
        restart_seconds: Pause before a restart.
        start_seconds: Timeout of the first line. silence_seconds: timeout of each further line.
        on_read: Called with each new state, in the thread that reads the lines.
    """

    def __init__(
        self,
        *,
        restart_seconds: float = RESTART_SECONDS,
        start_seconds: float = START_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        on_read: Callable[[Gpus], None] | None = None,
    ) -> None:
        self._restart_seconds = restart_seconds
        self._start_seconds = start_seconds
        self._silence_seconds = silence_seconds
        self._on_read = on_read
        self._run: _HelperRun | None = None
        self._not_ended: set[_HelperRun] = set()
        self._state = Gpus("starting")
        self._deadline = 0.0
        self._restart_at = 0.0
        self._stopped = False
        self._lock = threading.RLock()

    def want(self) -> None:
        """Start the process if needed, and kill it if it has timed out. Call about once a second."""
        with self._lock:
            if self._stopped:
                return
            now = time.monotonic()
            if self._run is not None:
                if now > self._deadline:
                    self._fail("The NVIDIA driver library (NVML) does not answer", now)
            elif now >= self._restart_at:
                if self._not_ended:
                    self._state = replace(self._state, reason=_STUCK)
                else:
                    self._start(now)

    def read(self) -> Gpus:
        """The current state."""
        return self._state

    def stop(self) -> None:
        """End the process; it is not restarted."""
        with self._lock:
            self._stopped = True
            process = self._run.process if self._run is not None else None
            self._give_up()
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)

    def _start(self, now: float) -> None:
        run = self._run = _HelperRun()
        self._not_ended.add(run)
        self._deadline = now + self._start_seconds
        threading.Thread(target=self._work, args=(run,), name="tfguard-gpus", daemon=True).start()

    def _work(self, run: _HelperRun) -> None:
        """Start one process, read its lines and wait for it."""
        try:
            process = self._open(run)
            if process is not None:
                self._read_lines(run, process)
        finally:
            self._not_ended.discard(run)

    def _open(self, run: _HelperRun) -> subprocess.Popen[bytes] | None:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "jupyter_tfguard.collectors.gpu"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # -m puts the current folder first on sys.path. The notebook folder may contain a json.py.
                cwd=_PACKAGE_PARENT,
            )
        except OSError as bad:
            note_problem("starting the GPU reader", bad)
            with self._lock:
                self._stopped = True
                self._state = Gpus("unavailable", f"Could not start the GPU reader: {bad.strerror}")
            return None
        with self._lock:
            run.process = process
            if run is not self._run:  # stopped in the meantime
                _kill(process)
        return process

    def _read_lines(self, run: _HelperRun, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # closed by another thread
            while line := process.stdout.readline(_LINE_LIMIT_BYTES):
                found = self._take(run, line)
                if found is not None and self._on_read is not None:
                    with shielded("reading the output of the GPU reader"):
                        self._on_read(found)
        with self._lock:
            if run is self._run:
                self._fail("The NVIDIA driver library (NVML) crashed", time.monotonic())
        _kill(process)  # it may have closed only its output
        process.wait()
        process.stdout.close()

    def _take(self, run: _HelperRun, line: bytes) -> Gpus | None:
        """The state from one line; None if the helper did not write it, or was stopped."""
        try:
            fields = json.loads(line)
            events = [*self._state.events, *fields["events"]]
            young = [e for e in events if e["time"] > time.time() - _EVENTS_SECONDS]
            found = Gpus(
                str(fields["state"]),
                fields["reason"],
                tuple(fields["devices"]),
                tuple(young[-_EVENT_LIMIT:]),
                float(fields["time"]) if fields["state"] == "ok" else None,
            )
        except (ValueError, KeyError, TypeError):
            return None  # printed by a library
        with self._lock:
            if run is not self._run:
                return None
            now = time.monotonic()
            self._deadline = now + self._silence_seconds
            self._state = found
            if found.state == "none":  # no GPU: nothing more to read
                self._stopped = True
                self._give_up()
            elif found.state != "ok":
                self._fail(str(found.reason), now, noted=False)
        return found

    def _fail(self, reason: str, now: float, *, noted: bool = True) -> None:
        """Kill the process; another one is started after a pause."""
        self._give_up()
        self._state = Gpus("unavailable", reason, events=self._state.events)
        self._restart_at = now + self._restart_seconds
        if noted:
            note_problem("reading the GPUs", reason, fix="Run nvidia-smi to check the driver.")

    def _give_up(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.process is not None:
            _kill(run.process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        process.kill()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
