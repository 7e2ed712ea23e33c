"""Which kernels this server runs, and which of their ends were accidents.

Works with every kernel manager: once a second the list of kernels and their processes is compared with what is watched;
events and restart callbacks only make it faster. All of it runs on the event loop, and nothing of it waits for a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Callable
from typing import Any

from jupyter_client.provisioning import LocalProvisioner
from jupyter_core.utils import ensure_async

from ..errors import SourceUnavailable
from ..record.identity import ProcessIdentity
from ..shield import note_problem, shielded
from ..watch.watcher import Watcher
from ..watch.witness import Kernel, Witness
from .activity import Activity
from .state import REMOTE, STARTING, KernelView

_RECONCILE_SECONDS = 1.0
_PATHS_SECONDS = 5.0
_PROVISIONER_WAIT_SECONDS = 3.0
_REMEMBERED_ENDS = 4000
_EVENTS_FRACTION = 0.05  # of a core, for comparing the list at each event
_PATHS_FRACTION = 0.002  # of a core, for asking for the sessions
_PATHS_LATEST_SECONDS = 60.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"


class _Tracked:
    """A kernel id, the process behind it now, and what was hung onto both."""

    def __init__(self, kernel: Kernel, manager: Any, activity: Activity) -> None:
        self.kernel = kernel
        self.manager = manager
        self.activity = activity
        self.since = time.monotonic()
        self.witness: Witness | None = None
        self.reader: int | None = None
        self.reason: str | None = STARTING
        self.callbacks: list[tuple[Callable[[], None], str]] = []


class KernelTracker:
    """Keeps the watcher's list equal to the server's.

    Args:
        serverapp: The Jupyter server.
        watcher: Does the watching.
        on_asked_end: Called with a process that ended because it was asked to.
    """

    def __init__(
        self,
        serverapp: Any,
        watcher: Watcher,
        on_asked_end: Callable[[ProcessIdentity], None],
    ) -> None:
        self._app = serverapp
        self._watcher = watcher
        self._on_asked_end = on_asked_end
        self._tracked: dict[str, _Tracked] = {}
        self._ended: dict[ProcessIdentity, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._paths_next = self._paths_soonest = 0.0

    # --- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; to be called on the running event loop."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(Exception):  # a server without this schema: the list alone will do
            self._app.event_logger.add_listener(
                schema_id=_KERNEL_ACTIONS, listener=self._on_kernel_action
            )
        self._task = self._loop.create_task(self._reconcile_forever())

    async def stop(self) -> None:
        """End; kernels that end from here on make no report."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(Exception):
            self._app.event_logger.remove_listener(listener=self._on_kernel_action)
        for kernel_id in list(self._tracked):
            self._untrack(kernel_id)

    async def _on_kernel_action(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        self._wake.set()

    async def _reconcile_forever(self) -> None:
        while True:
            began = time.thread_time()
            with shielded("watching the server's kernels"):
                self.reconcile()
            # A thousand kernels that start send thousands of events.
            pause = min((time.thread_time() - began) / _EVENTS_FRACTION, _RECONCILE_SECONDS)
            with shielded("reading the server's sessions"):
                await self._read_paths()
            await asyncio.sleep(pause)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _RECONCILE_SECONDS - pause)
            self._wake.clear()

    # --- the list ------------------------------------------------------------------------------------------------

    def reconcile(self) -> None:
        """Compare the server's kernels with what is watched, and follow."""
        ids = dict.fromkeys(self._app.kernel_manager.list_kernel_ids())
        for kernel_id in [k for k in self._tracked if k not in ids]:
            self._untrack(kernel_id)
        for kernel_id in ids:
            try:
                manager = self._app.kernel_manager.get_kernel(kernel_id)
            except (
                Exception
            ):  # it left the list just now; the managers raise KeyError or an HTTP error
                continue
            tracked = self._tracked.get(kernel_id)
            if tracked is None or tracked.manager is not manager:
                if tracked is not None:
                    self._untrack(kernel_id)
                tracked = self._tracked[kernel_id] = self._new(kernel_id, manager)
            self._follow(tracked)

    def _new(self, kernel_id: str, manager: Any) -> _Tracked:
        activity = Activity(manager)
        kernel = Kernel(
            kernel_id,
            kernel_name=getattr(manager, "kernel_name", None) or None,
            is_busy=activity.is_busy,
            runs_cell=activity.runs_cell,
            is_ending=lambda: bool(getattr(manager, "shutting_down", False)),
            activity=activity.last,
        )
        tracked = _Tracked(kernel, manager, activity)

        def died() -> None:
            with shielded("a kernel that its restarter found dead"):
                self._report_end(tracked)

        # Where there is no pidfd this is the first to know, and it knows the return code.
        for event in ("restart", "dead"):
            with contextlib.suppress(Exception):  # remote managers have no restarter
                manager.add_restart_callback(died, event)
                tracked.callbacks.append((died, event))
        return tracked

    def _follow(self, tracked: _Tracked) -> None:
        pid, reason = self._process(tracked)
        if pid is None:
            tracked.reason = reason
            if tracked.witness is not None and not tracked.witness.handle.is_running():
                self._ended_now(tracked)
            return
        witness = tracked.witness
        if witness is not None:
            # With a pidfd its end would have been told.
            lives = tracked.reader is not None or witness.handle.is_running()
            if lives and witness.identity.pid == pid:
                return
            self._ended_now(tracked)
        identity = ProcessIdentity.of(pid)
        # Between a death and the restart the old process is still there, as a zombie that accepts a pidfd.
        if identity is None or identity in self._ended:
            return
        try:
            witness = self._watcher.watch(pid, tracked.kernel)
        except SourceUnavailable:
            return
        tracked.witness, tracked.reason = witness, None
        descriptor = witness.handle.fileno()
        if descriptor is not None and self._loop is not None:
            with contextlib.suppress(NotImplementedError, OSError):
                self._loop.add_reader(descriptor, self._on_pidfd, tracked)
                tracked.reader = descriptor

    def _process(self, tracked: _Tracked) -> tuple[int | None, str | None]:
        """Process id of the kernel; without one, why it cannot be watched here."""
        provisioner = getattr(tracked.manager, "provisioner", None)
        pid = getattr(provisioner, "pid", None)
        process = getattr(provisioner, "process", None)
        if isinstance(pid, int) and pid > 0:
            # A provisioner of another kind may give the id of a process on another machine.
            if isinstance(provisioner, LocalProvisioner) or getattr(process, "pid", None) == pid:
                return pid, None
            return None, REMOTE
        waited = time.monotonic() - tracked.since
        return None, STARTING if waited < _PROVISIONER_WAIT_SECONDS else REMOTE

    # --- ends ----------------------------------------------------------------------------------------------------

    def _on_pidfd(self, tracked: _Tracked) -> None:
        with shielded("the end of a kernel"):
            self._ended_now(tracked)

    def gone(self, witness: Witness) -> None:
        """The sampler found a process ended that has no pidfd. May be called from any thread."""

        def check() -> None:
            with shielded("the end of a kernel"):
                for tracked in self._tracked.values():
                    if tracked.witness is witness:
                        self._ended_now(tracked)

        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(check)

    def _ended_now(self, tracked: _Tracked) -> None:
        witness = tracked.witness
        if witness is None:
            return
        asked = witness.was_asked_to_end() or tracked.kernel.kernel_id not in self._tracked
        if asked and witness.hang is None:
            self._detach(tracked)
            self._remember_end(witness.identity)
            self._watcher.drop(witness)
            self._on_asked_end(witness.identity)
        else:
            self._report_end(tracked, asked=asked)

    def _report_end(self, tracked: _Tracked, *, asked: bool = False) -> None:
        witness = tracked.witness
        if witness is None:
            return
        if tracked.kernel.notebook_path is None:
            tracked.kernel.notebook_path = self._claimed_path(witness.live.header)
        self._detach(tracked)
        self._remember_end(witness.identity)
        pid = witness.identity.pid
        self._watcher.ended(witness, lambda: _returncode(tracked.manager, pid), asked=asked)

    def _claimed_path(self, header: dict[str, Any] | None) -> str | None:
        """The notebook's path as its kernel tells it, relative to the server's folder as people see it."""
        claimed = (header or {}).get("notebook_path")
        if (
            not isinstance(claimed, str)
            or not claimed
            or _UUID.fullmatch(os.path.basename(claimed))
        ):
            return None
        root = os.path.abspath(getattr(self._app, "root_dir", "") or "/")
        inside = os.path.relpath(os.path.abspath(claimed), root)
        return claimed[:1000] if inside.startswith("..") else inside[:1000]

    def _remember_end(self, identity: ProcessIdentity) -> None:
        self._ended[identity] = None
        while len(self._ended) > _REMEMBERED_ENDS:
            del self._ended[next(iter(self._ended))]

    def _detach(self, tracked: _Tracked) -> None:
        if tracked.reader is not None and self._loop is not None:
            self._loop.remove_reader(tracked.reader)
        tracked.reader = None
        tracked.witness = None
        tracked.reason = STARTING

    def _untrack(self, kernel_id: str) -> None:
        tracked = self._tracked.pop(kernel_id)
        tracked.activity.close()
        witness = tracked.witness
        for callback, event in tracked.callbacks:
            with contextlib.suppress(Exception):
                tracked.manager.remove_restart_callback(callback, event)
        if witness is None:
            return
        if witness.identity.is_running():
            self._detach(tracked)
            self._watcher.drop(witness)
        else:
            self._ended_now(tracked)  # asked for: it has left the list

    # --- for the panel -------------------------------------------------------------------------------------------

    @property
    def has_kernels(self) -> bool:
        """True while the server has a kernel."""
        return bool(self._tracked)

    def views(self) -> list[KernelView]:
        """All kernels of the server."""
        return [_view(tracked) for tracked in self._tracked.values()]

    def view(self, kernel_id: str) -> KernelView | None:
        """One kernel; None when the server has none of this id."""
        tracked = self._tracked.get(kernel_id)
        return _view(tracked) if tracked else None

    async def _read_paths(self) -> None:
        """Learn the notebooks' paths from the server's sessions, every few seconds, sooner for a new kernel."""
        now = time.monotonic()
        young = any(
            t.kernel.notebook_path is None and now - t.since < 2 * _PATHS_SECONDS
            for t in self._tracked.values()
        )
        if not self._tracked or now < (self._paths_soonest if young else self._paths_next):
            return
        began = time.thread_time()
        try:
            sessions = await ensure_async(self._app.session_manager.list_sessions())
        except Exception as bad:  # another session manager, or a kernel that left in between
            note_problem("reading the server's sessions", bad)
            return
        for session in sessions:
            tracked = self._tracked.get(str((session.get("kernel") or {}).get("id")))
            path = session.get("path")
            # JupyterLab makes a session under a random id, and gives it the notebook's path a moment later.
            if (
                tracked is not None
                and session.get("type") != "console"
                and not _UUID.fullmatch(path or "")
            ):
                tracked.kernel.notebook_path = path or None
        # The server reads a data base and makes a description of every kernel.
        cost = (time.thread_time() - began) / _PATHS_FRACTION
        self._paths_soonest = now + min(cost, _PATHS_LATEST_SECONDS)
        self._paths_next = max(now + _PATHS_SECONDS, self._paths_soonest)


def _view(tracked: _Tracked) -> KernelView:
    return KernelView(
        kernel=tracked.kernel,
        execution_state=_execution_state(tracked.manager),
        language=_language(tracked.manager),
        witness=tracked.witness,
        unwatched_reason=tracked.reason,
    )


def _execution_state(manager: Any) -> str:
    state = getattr(manager, "execution_state", None)
    return state if isinstance(state, str) and state else "unknown"


def _returncode(manager: Any, pid: int) -> int | None:
    """What the kernel's starter knows of its end. Popen keeps it, so nobody who asks later misses it."""
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    if process is None or getattr(process, "pid", None) != pid:
        return None
    found = process.poll()
    return found if isinstance(found, int) else None


def _language(manager: Any) -> str | None:
    # The specification as it was loaded to start the kernel; asking for `kernel_spec` could read files.
    language = getattr(getattr(manager, "_kernel_spec", None), "language", None)
    return language if isinstance(language, str) and language else None
