"""A real ipykernel with the guard's startup file, in folders of its own."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

import jupyter_tfguard
from jupyter_tfguard.record.contents import RecordingContents, read_recording
from jupyter_tfguard.record.identity import ProcessIdentity
from jupyter_tfguard.watch.crash.held_stderr import HeldStderr
from tests.rigs.waiting import DEADLINE_SECONDS, wait_until

STARTUP_FILE = Path(jupyter_tfguard.__file__).parent / "etc" / "ipython_startup.py"
PACKAGE_PARENTS = (
    Path(jupyter_tfguard.__file__).parents[1],
    Path(jupyter_tfguard.__file__).parent / "alias",
)
_WAIT_SECONDS = DEADLINE_SECONDS
# Native text comes a little after the end of the cell.
_QUIET_SECONDS = 0.4
# What the machine that runs the tests may have set for itself.
_FOREIGN = ("TF_FORCE_GPU_ALLOW_GROWTH", "JPY_SESSION_NAME", "PYTHONSTARTUP")
# With PYTEST_CURRENT_TEST in its environment ipykernel leaves fd 1 and 2 alone: not what a user has.
_FOREIGN_PREFIXES = ("TFGUARD_", "JUPYTER_", "PYTEST_")


@dataclass
class Ran:
    """What one cell did."""

    stdout: str = ""
    stderr: str = ""
    error: str | None = None
    result: str | None = None
    traceback: str = ""
    displayed: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Everything printed."""
        return self.stdout + self.stderr


@dataclass
class GuardedKernel:
    """A kernel process; :meth:`start` it, :meth:`run` cells, and :meth:`close` it."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    startup_file: bool = True
    before: str = ""  # code of the user's own, run before all startup files
    kernel_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _held: HeldStderr | None = None

    def start(self) -> GuardedKernel:
        """Start the kernel and wait until it answers."""
        profile = self.folder / "ipython" / "profile_default" / "startup"
        profile.mkdir(parents=True, exist_ok=True)
        if self.startup_file:
            shutil.copy(STARTUP_FILE, profile / "00-tfguard.py")
        (self.folder / "before.py").write_text(self.before)
        runtime = self.folder / "runtime"
        runtime.mkdir(exist_ok=True)
        (self.folder / "work").mkdir(exist_ok=True)
        self.manager: Any = KernelManager(
            connection_file=str(runtime / f"kernel-{self.kernel_id}.json"),
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            shutdown_wait_time=_WAIT_SECONDS,  # after half of it comes SIGTERM
        )
        self._log = open(self.folder / "kernel-output.txt", "ab")  # noqa: SIM115
        self.manager.start_kernel(
            env=self.full_environment(),
            cwd=str(self.folder / "work"),
            stdout=self._log,
            stderr=self._log,
        )
        self.client: Any = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=_WAIT_SECONDS)
        return self

    def full_environment(self) -> dict[str, str]:
        """The kernel's environment: private folders, nothing of the guard's from outside."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in _FOREIGN and not name.startswith(_FOREIGN_PREFIXES)
        }
        paths = [str(path) for path in PACKAGE_PARENTS]
        own = {
            "TFGUARD_DIR": str(self.data),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "share"),
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "PYTHONPATH": os.pathsep.join([*paths, inherited.get("PYTHONPATH", "")]).rstrip(
                os.pathsep
            ),
            "PYTHONSTARTUP": str(self.folder / "before.py"),
            "PYTHONWARNINGS": "default",
            "TF_CPP_MIN_LOG_LEVEL": "1",
        }
        return inherited | own | dict(self.environment)

    @property
    def data(self) -> Path:
        """The guard's folder."""
        return self.folder / "tfguard"

    @property
    def pid(self) -> int:
        """Process id of the kernel."""
        return int(self.manager.provisioner.process.pid)

    def run(
        self,
        code: str,
        *,
        timeout: float = _WAIT_SECONDS,
        cell_id: str | None = None,
        history: bool = True,
    ) -> Ran:
        """Run a cell to its end."""
        return self.finish(self.send(code, cell_id=cell_id, history=history), timeout=timeout)

    def send(self, code: str, *, cell_id: str | None = None, history: bool = True) -> str:
        """Begin to run a cell; the id of the request."""
        content = {
            "code": code,
            "silent": False,
            "store_history": history,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        metadata = {} if cell_id is None else {"cellId": cell_id}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def finish(
        self,
        request: str,
        *,
        timeout: float = _WAIT_SECONDS,
        quiet_seconds: float = _QUIET_SECONDS,
    ) -> Ran:
        """Wait for the end of a cell and gather what it printed, also shortly after the kernel's "idle"."""
        ran = Ran()
        for message in self.published(request, timeout=timeout, quiet_seconds=quiet_seconds):
            if message["parent_header"].get("msg_id") == request:
                _gather(ran, message["msg_type"], message["content"])
        return ran

    def published(
        self, request: str, *, timeout: float = _WAIT_SECONDS, quiet_seconds: float = 0.0
    ) -> list[dict[str, Any]]:
        """What the kernel publishes until a request has ended, and then until it was quiet for so long."""
        found: list[dict[str, Any]] = []
        end, ended = time.monotonic() + timeout, False
        while time.monotonic() < end:
            try:
                found.append(self.client.get_iopub_msg(timeout=quiet_seconds if ended else 1.0))
            except queue.Empty:
                if ended:
                    return found
                assert self.is_alive(), f"the kernel died: {found[-3:]}\n{self.remains()}"
                continue
            ended |= _is_end(found[-1], request)
            if ended and not quiet_seconds:
                return found
        raise AssertionError(f"not at rest within {timeout} s: {found[-20:]}")

    def is_alive(self) -> bool:
        """True while the process runs."""
        return bool(self.manager.is_alive())

    def die(self, code: str, *, timeout: float = _WAIT_SECONDS) -> int:
        """Run a cell that ends the kernel; its return code, negative for a signal."""
        self.send(code)
        return self.wait_for_end(timeout=timeout)

    def hold_stderr(self) -> None:
        """Keep what the kernel's native code writes until its end, as a watcher does."""
        process, self._held = ProcessIdentity.of(self.pid), HeldStderr()
        assert process is not None
        self._held.hold(process, self.recording().header["guard"])

    def remains(self) -> str:
        """What a dead kernel has left of the reason: return code, stderr tail, stack."""
        code = self.manager.provisioner.process.poll()
        self._add_stderr()
        left = read_recording(self.recording_paths()[0])
        return f"{code=}\n{left.stderr_tail[-2000:]}\n{left.fault_text[:4000]}"

    def die_watched(self, code: str) -> int:
        """The same, with what a watcher keeps of its last words."""
        self.hold_stderr()
        ended = self.die(code)
        self._add_stderr()
        return ended

    def _add_stderr(self) -> None:
        if self._held is not None:
            self._held.finish(self.recording_paths()[0])

    def wait_for_end(self, *, timeout: float = _WAIT_SECONDS) -> int:
        """Wait until the process has ended; its return code."""
        process = self.manager.provisioner.process
        wait_until(lambda: process.poll() is not None, "the kernel's end", seconds=timeout)
        return int(process.returncode)

    def wait_for_event(self, kind: str, *, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many events of a kind are in the journal."""

        def enough() -> list[dict[str, Any]] | None:
            found = [event for event in self.recording().events if event["kind"] == kind]
            return found if len(found) >= count else None

        return wait_until(enough, f"{count} events {kind}")

    def recording_paths(self) -> list[Path]:
        """The recordings' folders."""
        return sorted((self.data / "recordings").glob("*"))

    def recording(self) -> RecordingContents:
        """The only recording, read back."""
        paths = self.recording_paths()
        assert len(paths) == 1, paths
        return read_recording(paths[0])

    def problems(self) -> str:
        """What the guard wrote down of its own failures."""
        path = self.data / "problems.jsonl"
        return path.read_text() if path.exists() else ""

    def shutdown(self) -> None:
        """Ask the kernel to end, and wait for it."""
        self.manager.shutdown_kernel(now=False)

    def close(self) -> None:
        """End everything that is left."""
        with contextlib.suppress(Exception):
            self.client.stop_channels()
        with contextlib.suppress(Exception):
            if self.is_alive():
                os.kill(self.pid, signal.SIGKILL)
                self.wait_for_end()
        with contextlib.suppress(Exception):
            self.manager.cleanup_resources()
        self._log.close()


def _is_end(message: dict[str, Any], request: str) -> bool:
    idle = message["content"].get("execution_state") == "idle"
    return idle and message["parent_header"].get("msg_id") == request


def _gather(ran: Ran, kind: str, content: dict[str, Any]) -> None:
    if kind == "stream":
        if content["name"] == "stdout":
            ran.stdout += content["text"]
        else:
            ran.stderr += content["text"]
    elif kind == "error":
        ran.error = content["ename"]
        ran.traceback = "\n".join(content["traceback"])
    elif kind == "display_data":
        ran.displayed.append(content["data"]["text/plain"])
    elif kind == "execute_result":
        ran.result = content["data"]["text/plain"]


@contextlib.contextmanager
def guarded_kernel(folder: Path, **how: Any) -> Iterator[GuardedKernel]:
    """A started kernel that is ended at the end of the block."""
    kernel = GuardedKernel(folder, **how)
    try:
        yield kernel.start()
    finally:
        kernel.close()


def works(kernel: GuardedKernel, code: str) -> None:
    """Run code that asserts by itself; it may import TensorFlow."""
    ran = kernel.run(code, timeout=600)
    assert ran.error is None, f"{ran.error}\n{ran.traceback}"


def run_terminal(kernel: GuardedKernel, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in terminal IPython with the kernel's folders."""
    return subprocess.run(
        [sys.executable, "-m", "IPython", "--colors=NoColor", "-c", code],
        env=kernel.full_environment(),
        cwd=kernel.folder,
        capture_output=True,
        text=True,
        timeout=_WAIT_SECONDS,
    )
