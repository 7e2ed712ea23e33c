"""A real kernel in a memory group of its own, for ``survival.py``: it is in the group from its first instruction.

The peak is sampled from outside, as the use of the group without its file cache: that is what the group cannot give back. A
sampler misses a peak that is shorter than its interval; the group's own counter misses nothing but includes the file cache.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

from jupyter_tfguard.demo.limits import LimitedGroup, make_limit
from jupyter_tfguard.memory.groups import MemoryGroup, memory_groups
from tests.conftest import write_options
from tests.kernel.rig import PACKAGE_PARENTS, STARTUP_FILE

HELPERS = Path(__file__).parent / "survival" / "helpers"
LIMIT_BYTES = 2 << 30
_START_SECONDS = 120.0
_SAMPLE_SECONDS = 0.01
_FOREIGN_PREFIXES = ("TFGUARD_", "JUPYTER_", "PYTEST_", "TF_", "KERAS_", "JPY_", "PYTHONSTARTUP")
# Waits until it has been moved into the group, then becomes the kernel.
_ENTER = 'while [ ! -e "$0" ]; do sleep 0.02; done; exec "$@"'
_LAST_STOP = "getattr(__import__('jupyter_tfguard.kernel.current', fromlist=['x']).session.stop.guard.stops.last, 'seconds', None)"


@dataclass
class CellRun:
    """One cell: how it ended, what it printed, and what it took.

    Attributes:
        ended: "ok", "error", "died" or "hung".
        error: Type and first line of the exception.
        message: The whole text of the exception.
    """

    ended: str
    seconds: float
    cpu_seconds: float | None = None
    error: str = ""
    message: str = ""
    text: str = ""


@dataclass
class LimitedKernel:
    """A kernel in a group; use it as a context manager.

    Args:
        level: "none" (no guard at all), or a value of the option ``TfGuard.stop``.
        python: The interpreter of the kernel.
        limit_bytes: Memory limit of the group.
    """

    level: str
    python: str = sys.executable
    limit_bytes: int = LIMIT_BYTES
    peak_bytes: int = field(default=0, init=False)

    def __enter__(self) -> LimitedKernel:
        self.folder = Path(tempfile.mkdtemp(prefix="tfguard-survival-"))
        self.limit = make_limit(self.limit_bytes)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        for name in ("ipython/profile_default/startup", "runtime", "work"):
            (self.folder / name).mkdir(parents=True)
        if self.level != "none":
            shutil.copy(STARTUP_FILE, self.folder / "ipython/profile_default/startup/00-tfguard.py")
        write_options(self.folder / "config", self.level)
        go = self.folder / "go"
        self.manager: Any = KernelManager(
            connection_file=str(self.folder / "runtime/kernel.json"),
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        )
        self.manager.kernel_spec.argv = [
            *("/bin/sh", "-c", _ENTER, str(go)),
            *(self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"),
        ]
        with open(self.folder / "kernel-output.txt", "ab") as log:
            self.manager.start_kernel(
                env=self._environment(), cwd=str(self.folder / "work"), stdout=log, stderr=log
            )
        self.process: subprocess.Popen[bytes] = self.manager.provisioner.process
        self.limit.add(self.process.pid)
        self.group: MemoryGroup = memory_groups(self.process.pid)[0]
        go.touch()
        self._sampling = True
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self.client: Any = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=_START_SECONDS)

    def _environment(self) -> dict[str, str]:
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(_FOREIGN_PREFIXES)}
        own = {
            "IPYTHONDIR": str(self.folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "share"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "TFGUARD_DIR": str(self.folder / "tfguard"),
            "PYTHONPATH": os.pathsep.join(map(str, (*PACKAGE_PARENTS, HELPERS))),
            "TF_CPP_MIN_LOG_LEVEL": "1",
        }
        return inherited | own | ({"TFGUARD_DISABLE": "1"} if self.level == "none" else {})

    def _sample(self) -> None:
        while self._sampling:
            used, cache = self.group.used_bytes(), self.group.reclaimable_bytes()
            if used is not None:
                self.peak_bytes = max(self.peak_bytes, used - (cache or 0))
            time.sleep(_SAMPLE_SECONDS)

    @property
    def is_alive(self) -> bool:
        """True while the process runs."""
        return self.process.poll() is None

    def run(self, code: str, *, seconds: float) -> CellRun:
        """Run a cell to its end, to the kernel's end, or until its time is over."""
        began, cpu = time.monotonic(), self._cpu_seconds()
        request = self.client.execute(code)
        ran = CellRun("hung", 0.0)
        while time.monotonic() - began < seconds:
            try:
                message = self.client.get_iopub_msg(timeout=0.2)
            except queue.Empty:
                if not self.is_alive:
                    ran.ended = "died"
                    break
                continue
            if message["parent_header"].get("msg_id") == request and _gather(ran, message):
                break
        ran.seconds = round(time.monotonic() - began, 3)
        after = self._cpu_seconds()
        if cpu is not None and after is not None:
            ran.cpu_seconds = round(after - cpu, 3)
        return ran

    def last_stop_seconds(self) -> float | None:
        """What the guard says of its last stop: seconds from the threshold to the exception."""
        print_it = f"try:\n print('# %s #' % ({_LAST_STOP}))\nexcept Exception: pass"
        # A thread that ends now may print as well.
        said = re.search(r"# ([\d.e-]+) #", self.run(print_it, seconds=30).text)
        return float(said[1]) if said else None

    def ending(self) -> str:
        """How the process ended, for example ``SIGKILL``."""
        code = self.process.poll()
        if code is None:
            return "alive"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    def oom_kills(self) -> int:
        """Processes of the group that the OOM killer killed."""
        return self.group.oom_kill_count() or 0

    def _cpu_seconds(self) -> float | None:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(self.process.pid).cpu_times()
            return float(times.user + times.system)
        return None

    def __exit__(self, *_: object) -> None:
        self._sampling = False
        with contextlib.suppress(Exception):
            self.client.stop_channels()
        if isinstance(self.limit, LimitedGroup):  # the kernel and every child that it left behind
            for pid in (self.limit.folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(Exception):
            self.manager.shutdown_kernel(now=True)
        self.limit.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def _gather(ran: CellRun, message: dict[str, Any]) -> bool:
    """Take one message into the result; True at the end of the cell."""
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        ran.text = (ran.text + content["text"])[-20_000:]
    elif kind == "error":
        first = (content["evalue"].strip() or " ").splitlines()[0]
        ran.message = content["evalue"]
        ran.ended, ran.error = "error", f"{content['ename']}: {first}"[:200].strip(": ")
    elif kind == "status" and content["execution_state"] == "idle":
        if ran.ended == "hung":
            ran.ended = "ok"
        return True
    return False
