"""One kernel of this server: what its manager, of any kind, gives, and what belongs to it while it is watched.

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
# Between two cells a kernel is idle for a moment; the run goes on.
_PAUSE_SECONDS = 3.0


def process_of(manager: Any, known_seconds: float) -> tuple[int | None, str | None]:
    """Process id of the kernel; without one, why it cannot be watched here.

    Args:
        manager: Of the kernel.
        known_seconds: For how long this manager is known.
    """
    provisioner = getattr(manager, "provisioner", None)
    pid = getattr(provisioner, "pid", None)
    process = getattr(provisioner, "process", None)
    if isinstance(pid, int) and pid > 0:
        # A provisioner of another kind may give the id of a process on another machine.
        if isinstance(provisioner, LocalProvisioner) or getattr(process, "pid", None) == pid:
            return pid, None
        return None, REMOTE
    return None, STARTING if known_seconds < _PROVISIONER_WAIT_SECONDS else REMOTE


def recorded_process(kernel_id: str) -> int | None:
    """Process id of a kernel of this server whose manager names no process; None where no such kernel runs here.

    Its own recording names the kernel and the server, and says that it is of this machine.
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


def returncode(manager: Any, pid: int) -> int | None:
    """What the kernel's starter knows of its end. Popen keeps it, so nobody who asks later misses it."""
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    if process is None or getattr(process, "pid", None) != pid:
        return None
    found = process.poll()
    return found if isinstance(found, int) else None


def execution_state(manager: Any) -> str:
    """As the manager tells it; "unknown" where it does not."""
    state = getattr(manager, "execution_state", None)
    return state if isinstance(state, str) and state else "unknown"


def language(manager: Any) -> str | None:
    """Of the kernel's code; None where it is not known."""
    # The specification as it was loaded to start the kernel; asking for `kernel_spec` could read files.
    found = getattr(getattr(manager, "_kernel_spec", None), "language", None)
    return found if isinstance(found, str) and found else None


def command(manager: Any) -> tuple[str, ...] | None:
    """What the kernel's specification starts; None where it is not known."""
    found = getattr(getattr(manager, "_kernel_spec", None), "argv", None)
    return tuple(map(str, found)) if isinstance(found, list) and found else None


def guard_command(kernel_name: str | None, argv: tuple[str, ...] | None) -> str:
    """The command that loads the guard in this kernel: for a terminal, or for a cell if no terminal command works.

    Args:
        kernel_name: Of the kernel's specification; None = unknown.
        argv: Command of the specification; None = unknown.
    """
    argv = argv or _USUAL_COMMAND
    enable = enable_command(kernel_name, argv) if kernel_name is not None else None
    if enable is not None:
        return enable
    return "%load_ext tfguard" if loads_own_guard(argv) else "%pip install jupyter-tfguard"


class Activity:
    """What the manager says of its kernel's doings.

    Jupyter Server's own managers have traits for it, so that no change is missed; of others only the state of now is known.

    Args:
        manager: Of the kernel.
        in_cell: True while the kernel itself says that a cell runs: its manager believes the "idle" of a subshell.
    """

    def __init__(self, manager: Any, in_cell: Callable[[], bool] = lambda: False) -> None:
        self._manager = manager
        self._in_cell = in_cell
        self._since = self._idle_since = time.monotonic()
        self._run_since: float | None = None
        # The server's managers raise where there was none yet.
        self._heard: int | None = None
        with contextlib.suppress(Exception):
            self._heard = None if manager.last_activity is None else 0
        with contextlib.suppress(AttributeError):  # managers of other kinds have no traits
            manager.observe(self._state_changed, "execution_state")
            manager.observe(self._spoke, "last_activity")

    def _state_changed(self, change: Any) -> None:
        now = time.monotonic()
        if change.new == "busy":
            is_short = now - self._idle_since < _PAUSE_SECONDS
            was_paused = change.old == "idle" and (is_short or self._in_cell())
            if self._run_since is None or not was_paused:
                self._run_since = time.time()
        elif change.new == "idle":
            self._idle_since = now

    def _spoke(self, change: Any) -> None:
        # The server itself writes here when it starts a kernel, twice, before it listens to it.
        listens = getattr(self._manager, "_activity_stream", None) is not None
        self._heard = (self._heard or 0) + listens

    def is_busy(self) -> bool:
        """True while a cell runs, or while that is not known."""
        state = execution_state(self._manager)
        # A kernel that nobody has talked to yet stays "starting" for ever.
        if state == "starting":
            return time.monotonic() - self._since < _START_SECONDS
        return state not in ("idle", "dead")

    def runs_cell(self) -> bool:
        """True only when the manager says that a cell runs."""
        return execution_state(self._manager) == "busy"

    def run_since(self) -> float | None:
        """When the run began that goes on or was the last, Unix seconds. None = there was none, or not known."""
        return self._run_since

    def heard_count(self) -> int | None:
        """How often the kernel was heard; greater after it said something. None = not known."""
        return self._heard

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(Exception):
            self._manager.unobserve(self._state_changed, "execution_state")
            self._manager.unobserve(self._spoke, "last_activity")


class Tracked:
    """A kernel id, the process behind it now, and what was hung onto both; as it is made, no process is looked at yet."""

    def __init__(self, kernel_id: str, manager: Any) -> None:
        self.monitored: MonitoredKernel | None = None
        self.activity = activity = Activity(manager, in_cell=lambda: _runs_cell(self.monitored))
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
    """For the panel."""
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
