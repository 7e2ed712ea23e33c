"""One kernel of this server: data from its manager, of any kind, and its state while it is tracked.

Only :func:`recorded_process` and :func:`guard_command` read files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

from jupyter_client.provisioning import LocalProvisioner

from ..kernelspecs.command import enable_command, loads_own_guard
from ..places import recordings_folder
from ..record.alive import Place
from ..record.contents import recording_header
from ..record.identity import ProcessIdentity
from ..watch.monitored import Kernel, MonitoredKernel
from .state import REMOTE, STARTING, KernelView

_PROVISIONER_WAIT_SECONDS = 3.0
_START_SECONDS = 60.0
_USUAL_COMMAND = ("/unknown/bin/python", "-m", "ipykernel_launcher")
# Short idle times between two cells are part of the run.
_PAUSE_SECONDS = 3.0


def process_of(manager: Any, known_seconds: float) -> tuple[int | None, str | None]:
    """Process id of the kernel, or the reason why it cannot be tracked here.

    Args:
        manager: The kernel's manager.
        known_seconds: Time since this manager was first seen.
    """
    provisioner = getattr(manager, "provisioner", None)
    pid = getattr(provisioner, "pid", None)
    process = getattr(provisioner, "process", None)
    if isinstance(pid, int) and pid > 0:
        # Other provisioners may return the id of a process on another machine.
        if isinstance(provisioner, LocalProvisioner) or getattr(process, "pid", None) == pid:
            return pid, None
        return None, REMOTE
    return None, STARTING if known_seconds < _PROVISIONER_WAIT_SECONDS else REMOTE


def recorded_process(kernel_id: str) -> int | None:
    """Process id of a kernel of this server whose manager has no process id; None if no such kernel runs here.

    It is found by its recording, which names the kernel, the server and the machine.
    """
    root, here = recordings_folder(), Place.here()
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(root)
    for name in names:
        identity = ProcessIdentity.from_folder_name(name)
        if identity is None or not identity.is_running():
            continue
        header = recording_header(root / name)
        if Place.of(header) != here or header.get("watcher_pid") != os.getpid():
            continue
        if header.get("kernel_id") == kernel_id:
            return identity.pid
    return None


def started_process(manager: Any, pid: int) -> Any:
    """The :class:`subprocess.Popen` with which the manager started this process; None if it has none.

    A restart replaces it in the manager.
    """
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    return process if getattr(process, "pid", None) == pid else None


def returncode(process: Any) -> int | None:
    """Return code from :func:`started_process`, which keeps it, so it can be read repeatedly; None if not known yet."""
    found = process.poll()
    return found if isinstance(found, int) else None


def execution_state(manager: Any) -> str:
    """The state reported by the manager, else "unknown"."""
    state = getattr(manager, "execution_state", None)
    return state if isinstance(state, str) and state else "unknown"


def notebook_of(manager: Any) -> str | None:
    """Absolute path of the notebook for which the server started the kernel, or renamed it to; None if unknown."""
    environment = (getattr(manager, "_launch_args", None) or {}).get("env") or {}
    found = environment.get("JPY_SESSION_NAME")
    # A server started in a notebook has inherited the variable.
    return found if isinstance(found, str) and found != os.environ.get("JPY_SESSION_NAME") else None


def language(manager: Any) -> str | None:
    """Programming language of the kernel; None if unknown."""
    # The specification loaded at the start of the kernel; the property `kernel_spec` could read files.
    found = getattr(getattr(manager, "_kernel_spec", None), "language", None)
    return found if isinstance(found, str) and found else None


def command(manager: Any) -> tuple[str, ...] | None:
    """Command in the kernel's specification; None if unknown."""
    found = getattr(getattr(manager, "_kernel_spec", None), "argv", None)
    return tuple(map(str, found)) if isinstance(found, list) and found else None


def guard_command(kernel_name: str | None, argv: tuple[str, ...] | None) -> str:
    """The command that loads the guard in this kernel: for a terminal, or for a cell if no terminal command works.

    Args:
        kernel_name: Name of the kernel's specification; None = unknown.
        argv: Command in the specification; None = unknown.
    """
    argv = argv or _USUAL_COMMAND
    enable = enable_command(kernel_name, argv) if kernel_name is not None else None
    if enable is not None:
        return enable
    return "%load_ext tfguard" if loads_own_guard(argv) else "%pip install jupyter-tfguard"


class KernelActivity:
    """Activity of the kernel as reported by its manager.

    Jupyter Server's managers have traits for it, so that no change is missed; other managers give only the current
    state.

    Args:
        manager: The kernel's manager.
        in_cell: True while the kernel itself reports a running cell: the manager also follows the "idle" of a subshell.
    """

    def __init__(self, manager: Any, in_cell: Callable[[], bool] = lambda: False) -> None:
        self._manager = manager
        self._in_cell = in_cell
        self._since = self._idle_since = time.monotonic()
        self._run_since: float | None = None
        # The server's managers raise if there was no activity yet.
        self._heard: int | None = None
        with contextlib.suppress(Exception):
            self._heard = None if manager.last_activity is None else 0
        with contextlib.suppress(AttributeError):  # managers of other kinds have no traits
            manager.observe(self._state_changed, "execution_state")
            manager.observe(self._message_received, "last_activity")

    def _state_changed(self, change: Any) -> None:
        now = time.monotonic()
        if change.new == "busy":
            is_short = now - self._idle_since < _PAUSE_SECONDS
            was_paused = change.old == "idle" and (is_short or self._in_cell())
            if self._run_since is None or not was_paused:
                self._run_since = time.time()
        elif change.new == "idle":
            self._idle_since = now

    def _message_received(self, change: Any) -> None:
        # The server itself sets this twice when it starts a kernel, before it listens to the kernel.
        listens = getattr(self._manager, "_activity_stream", None) is not None
        self._heard = (self._heard or 0) + listens

    def is_busy(self) -> bool:
        """True while a cell runs, or if that is unknown."""
        state = execution_state(self._manager)
        # A kernel without clients stays "starting".
        if state == "starting":
            return time.monotonic() - self._since < _START_SECONDS
        return state not in ("idle", "dead")

    def runs_cell(self) -> bool:
        """True only if the manager reports a running cell."""
        return execution_state(self._manager) == "busy"

    def run_since(self) -> float | None:
        """Start of the current or last run, Unix seconds; None = no run, or unknown."""
        return self._run_since

    def heard_count(self) -> int | None:
        """Number of messages received from the kernel; None = unknown."""
        return self._heard

    def close(self) -> None:
        """Stop observing the manager."""
        with contextlib.suppress(Exception):
            self._manager.unobserve(self._state_changed, "execution_state")
            self._manager.unobserve(self._message_received, "last_activity")


class Tracked:
    """A kernel id, its current process, and the callbacks attached to both; initially without a process."""

    def __init__(self, kernel_id: str, manager: Any) -> None:
        self.monitored: MonitoredKernel | None = None
        self.activity = activity = KernelActivity(
            manager, in_cell=lambda: _runs_cell(self.monitored)
        )
        self.kernel = Kernel(
            kernel_id,
            kernel_name=getattr(manager, "kernel_name", None) or None,
            is_busy=activity.is_busy,
            runs_cell=activity.runs_cell,
            is_ending=lambda: bool(getattr(manager, "shutting_down", False)),
            heard_count=activity.heard_count,
        )
        self.manager = manager
        self.since = time.monotonic()
        self.reader: int | None = None
        self.search: asyncio.Future[int | None] | None = None  # for a recording
        self.search_next = 0.0
        self.fix: asyncio.Future[str] | None = None  # how to load the guard in this process
        self.reason: str | None = STARTING
        self.callbacks: list[tuple[Callable[[], None], str]] = []


def view_of(tracked: Tracked) -> KernelView:
    """The kernel as a view for the panel."""
    return KernelView(
        kernel=tracked.kernel,
        language=language(tracked.manager),
        monitored=tracked.monitored,
        unwatched_reason=tracked.reason,
        run_since=tracked.activity.run_since(),
        argv=command(tracked.manager),
        fix=_result_of(tracked.fix),
    )


def _result_of(search: asyncio.Future[str] | None) -> str | None:
    if search is None or not search.done() or search.cancelled() or search.exception() is not None:
        return None
    return search.result()


def _runs_cell(monitored: MonitoredKernel | None) -> bool:
    return monitored is not None and monitored.live.runs_cell
