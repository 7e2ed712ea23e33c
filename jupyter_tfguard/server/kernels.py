"""Keeps track of the kernels of this server, and decides which of their ends are crashes.

Works with every kernel manager: once a second the list of kernels and their processes is compared with the tracked
kernels. Events and restart callbacks only reduce the delay. This code runs on the event loop and never waits for a
file.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from ..errors import SourceUnavailable
from ..record.identity import ProcessIdentity
from ..shield import shielded
from ..watch.monitored import MonitoredKernel
from ..watch.watcher import Watcher
from .culling import Culling
from .notebook_paths import NotebookPaths
from .state import REMOTE, STARTING, KernelView, lacks_guard
from .tracked import (
    Tracked,
    command,
    guard_command,
    notebook_of,
    process_of,
    recorded_process,
    returncode,
    started_process,
    view_of,
)

_RECONCILE_SECONDS = 1.0
_SEARCH_SECONDS = 3.0
_REMEMBERED_ENDS = 4000
_IN_HAND_SECONDS = 60.0  # a report takes a second, and many kernels may crash at once
_KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"


class KernelTracker:
    """Synchronises the watcher's list of kernels with the server's.

    Args:
        serverapp: The Jupyter server.
        watcher: Tracks the processes.
        on_asked_end: Called with a process whose end was requested, and the id of its kernel.
        on_missed_end: Called when a process ended before it was tracked; its recording has the facts.
    """

    def __init__(
        self,
        serverapp: Any,
        watcher: Watcher,
        on_asked_end: Callable[[ProcessIdentity, str], None],
        on_missed_end: Callable[[], None],
    ) -> None:
        self._app = serverapp
        self._watcher = watcher
        self._on_asked_end = on_asked_end
        self._on_missed_end = on_missed_end
        self._tracked: dict[str, Tracked] = {}
        self._ended: dict[ProcessIdentity, float] = {}  # monotonic seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._culling = Culling(serverapp.kernel_manager)
        self._paths = NotebookPaths(serverapp, lambda: self._tracked)

    # --- start and stop ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start; call this on the running event loop."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(Exception):  # a server without this schema: polling is enough
            self._app.event_logger.add_listener(
                schema_id=_KERNEL_ACTIONS, listener=self._on_kernel_action
            )
        self._paths.start()
        with shielded("observing the server's culler"):
            self._culling.start()
        self._timer = self._loop.call_soon(self._poll)

    async def stop(self) -> None:
        """Stop; kernels that end later are not reported."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._paths.stop()
        self._culling.stop()
        with contextlib.suppress(Exception):
            self._app.event_logger.remove_listener(listener=self._on_kernel_action)
        for kernel_id in list(self._tracked):
            self._untrack(kernel_id)

    async def _on_kernel_action(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        if self._timer is not None and self._loop is not None:  # not stopped
            self._timer.cancel()
            self._timer = self._loop.call_soon(self._poll)

    def _poll(self) -> None:
        assert self._loop is not None
        with shielded("tracking the server's kernels"):
            self.reconcile()
        with shielded("reading the server's sessions"):
            self._paths.poll()
        self._timer = self._loop.call_later(_RECONCILE_SECONDS, self._poll)

    # --- the list ------------------------------------------------------------------------------------------------

    def reconcile(self) -> None:
        """Compare the server's kernels with the tracked kernels, and track the differences."""
        ids = dict.fromkeys(self._app.kernel_manager.list_kernel_ids())
        for kernel_id in [k for k in self._tracked if k not in ids]:
            self._untrack(kernel_id)
        for kernel_id in ids:
            try:
                manager = self._app.kernel_manager.get_kernel(kernel_id)
            except (
                Exception
            ):  # just removed from the list; managers raise KeyError or an HTTP error
                continue
            tracked = self._tracked.get(kernel_id)
            if tracked is None or tracked.manager is not manager:
                if tracked is not None:
                    self._untrack(kernel_id)
                tracked = self._tracked[kernel_id] = self._new(kernel_id, manager)
            self._follow(tracked)

    def _new(self, kernel_id: str, manager: Any) -> Tracked:
        tracked = Tracked(kernel_id, manager)

        def died() -> None:
            with shielded("handling a kernel that the restarter reported dead"):
                if tracked.monitored is None:
                    self._ended_unwatched(tracked)
                else:
                    self._report_end(tracked)

        # Without a pidfd this is the first notification of the end, and the return code is available here.
        for event in ("restart", "dead"):
            with contextlib.suppress(Exception):  # remote managers have no restarter
                manager.add_restart_callback(died, event)
                tracked.callbacks.append((died, event))
        return tracked

    def _follow(self, tracked: Tracked) -> None:
        pid, reason = process_of(tracked.manager, time.monotonic() - tracked.since)
        if pid is None:
            pid = self._recorded_pid(tracked) if reason == REMOTE else None
        if pid is None:
            tracked.reason = reason
            if tracked.monitored is not None and not tracked.monitored.handle.is_running():
                self._ended_now(tracked)
            return
        monitored = tracked.monitored
        if monitored is not None:
            # With a pidfd its end would have been reported.
            is_running = tracked.reader is not None or monitored.handle.is_running()
            if is_running and monitored.identity.pid == pid:
                self._find_fix(tracked, monitored)
                return
            self._ended_now(tracked)
        identity = ProcessIdentity.of(pid)
        # Between a crash and the restart the old process still exists as a zombie, for which a pidfd can be opened.
        if identity is None or identity in self._ended:
            return
        try:
            monitored = self._watcher.watch(pid, tracked.kernel)
        except SourceUnavailable:
            return
        tracked.monitored, tracked.reason = monitored, None
        descriptor = monitored.handle.fileno()
        if descriptor is not None and self._loop is not None:
            with contextlib.suppress(NotImplementedError, OSError):
                self._loop.add_reader(descriptor, self._on_pidfd, tracked)
                tracked.reader = descriptor

    def _find_fix(self, tracked: Tracked, monitored: MonitoredKernel) -> None:
        """Determine in a thread, once per process, how to load the guard in a kernel without it."""
        if tracked.fix is None and self._loop is not None and lacks_guard(monitored):
            name, argv = tracked.kernel.kernel_name, command(tracked.manager)
            tracked.fix = self._loop.run_in_executor(None, guard_command, name, argv)

    def _recorded_pid(self, tracked: Tracked) -> int | None:
        """Process id from the kernel's recording, searched in a thread every few seconds until it is found."""
        monitored = tracked.monitored
        if monitored is not None and monitored.handle.is_running():
            return monitored.identity.pid
        search, now = tracked.search, time.monotonic()
        if search is not None and search.done():
            tracked.search = None
            if not search.cancelled() and search.exception() is None:
                return search.result()
        elif search is None and now >= tracked.search_next and self._loop is not None:
            tracked.search_next = now + _SEARCH_SECONDS
            tracked.search = self._loop.run_in_executor(
                None, recorded_process, tracked.kernel.kernel_id
            )
        return None

    # --- ends ----------------------------------------------------------------------------------------------------

    def _on_pidfd(self, tracked: Tracked) -> None:
        with shielded("handling the end of a kernel"):
            self._ended_now(tracked)

    def gone(self, monitored: MonitoredKernel) -> None:
        """Handle the end of a process without a pidfd, detected by the sampler. Thread-safe."""

        def check() -> None:
            with shielded("handling the end of a kernel"):
                for tracked in self._tracked.values():
                    if tracked.monitored is monitored:
                        self._ended_now(tracked)

        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(check)

    def _ended_now(self, tracked: Tracked) -> None:
        monitored = tracked.monitored
        if monitored is None:
            return
        asked = (
            monitored.was_asked_to_end()
            or tracked.kernel.kernel_id not in self._tracked
            or self._was_replaced(tracked, monitored)
            or bool(
                getattr(self._app, "_stopping", False)
            )  # a signal was sent to the server and its kernels
        )
        if tracked.activity.run_since() is not None:  # else there is nothing that the user lost
            monitored.cull = self._culling.of(tracked.kernel.kernel_id)
        if asked and monitored.hang is None and monitored.cull is None:
            self._remember_end(monitored)
            self._detach(tracked)
            self._watcher.drop(monitored)
            self._on_asked_end(monitored.identity, tracked.kernel.kernel_id)
        else:
            self._report_end(tracked, asked=asked)

    def _was_replaced(self, tracked: Tracked, monitored: MonitoredKernel) -> bool:
        """True if the manager has started another process, and its restarter did not report this one dead before.

        Without a pidfd a requested restart can begin and end between two polls.
        """
        pid, _ = process_of(tracked.manager, 0.0)
        return bool(tracked.callbacks) and pid is not None and pid != monitored.identity.pid

    def _report_end(self, tracked: Tracked, *, asked: bool = False) -> None:
        monitored = tracked.monitored
        if monitored is None:
            return
        if tracked.kernel.notebook_path is None:
            tracked.kernel.notebook_path = self._paths.relative(notebook_of(tracked.manager))
        self._remember_end(monitored)
        self._detach(tracked)
        process = started_process(tracked.manager, monitored.identity.pid)
        by_starter = None if process is None else lambda: returncode(process)
        self._watcher.ended(monitored, by_starter, asked=asked)

    def _ended_unwatched(self, tracked: Tracked) -> None:
        """The restarter reported an untracked kernel dead: its end is known, or it ended while the loop was blocked."""
        pid, _ = process_of(tracked.manager, 0.0)
        if pid is not None and all(ended.pid != pid for ended in self._ended):
            self._on_missed_end()

    def _remember_end(self, monitored: MonitoredKernel) -> None:
        self._ended[monitored.identity] = time.monotonic()
        while len(self._ended) > _REMEMBERED_ENDS:
            del self._ended[next(iter(self._ended))]

    def _detach(self, tracked: Tracked) -> None:
        if tracked.reader is not None and self._loop is not None:
            self._loop.remove_reader(tracked.reader)
        tracked.reader = None
        tracked.monitored = tracked.fix = None
        tracked.reason = STARTING

    def _untrack(self, kernel_id: str) -> None:
        tracked = self._tracked.pop(kernel_id)
        tracked.activity.close()
        monitored = tracked.monitored
        for callback, event in tracked.callbacks:
            with contextlib.suppress(Exception):
                tracked.manager.remove_restart_callback(callback, event)
        if monitored is None:
            return
        if monitored.identity.is_running():
            self._detach(tracked)
            self._watcher.drop(monitored)
        else:
            self._ended_now(tracked)  # requested: the kernel has left the list

    def has_in_hand(self, identity: ProcessIdentity) -> bool:
        """True if this process is tracked, or was tracked when it ended a moment ago: its end is handled already.

        Thread-safe.
        """
        monitored_kernels = (tracked.monitored for tracked in list(self._tracked.values()))
        if any(identity == one.identity for one in monitored_kernels if one is not None):
            return True
        ended = self._ended.get(identity)
        return ended is not None and time.monotonic() - ended < _IN_HAND_SECONDS

    # --- for the panel -------------------------------------------------------------------------------------------

    @property
    def has_kernels(self) -> bool:
        """True while the server has a kernel."""
        return bool(self._tracked)

    def views(self) -> list[KernelView]:
        """All kernels of the server."""
        return [view_of(tracked) for tracked in self._tracked.values()]

    def view(self, kernel_id: str) -> KernelView | None:
        """One kernel; None if the server has no kernel with this id."""
        tracked = self._tracked.get(kernel_id)
        return view_of(tracked) if tracked else None
