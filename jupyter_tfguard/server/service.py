"""Connects the parts of the extension: watcher, reports, GPUs, and the data for the routes."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Protocol

from ..config import TfGuard
from ..installed import Installed
from ..options import options_json
from ..places import bundles_folder, copies_folder, recordings_folder, slow_recordings
from ..postmortem.handle import Postmortem
from ..postmortem.rehearsal import rehearse
from ..postmortem.wrapped import recorder_of
from ..record.alive import FRESH_SECONDS
from ..record.bundle import ANNOUNCED, died_of
from ..record.identity import ProcessIdentity
from ..record.recording import mark_end
from ..record.unsaved import BackedStore
from ..shield import read_problems, shielded
from ..watch.copies import Copies
from ..watch.crash.child_kill import ReportedKill
from ..watch.gpu.gpu_helper import GpuHelper, Gpus
from ..watch.watcher import Watcher
from .gpu_state import GpuWatch
from .kernels import KernelTracker
from .notify import EVENT_SCHEMA, EVENT_SCHEMA_FILE, Entry, event_data, log_crash, log_failure
from .problems import DISABLED, problems
from .state import GpuView, KernelView, history, kernel_state, limit_ahead, number, other_kernel

_GPU_SECONDS = 1.0
_MISSED_SECONDS, _ORPHANS_BUSY_SECONDS = 1.0, 5.0


class OpenPage(Protocol):
    """An open page."""

    def leave(self) -> None:
        """Close the connection."""

    def hint_crashes(self, to_hidden: bool) -> None:
        """Notify the page that the list of crashes has changed; a hidden page only if `to_hidden`."""


class Service:
    """One per server.

    Args:
        serverapp: The Jupyter server.
        settings: The options.
    """

    def __init__(self, serverapp: Any, settings: TfGuard) -> None:
        self._app = serverapp
        self._settings = settings
        self.store = BackedStore(bundles_folder())
        self._clients: set[OpenPage] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gpu_timer: asyncio.TimerHandle | None = None
        self._watcher: Watcher | None = None
        self._tracker: KernelTracker | None = None
        self._postmortem: Postmortem | None = None
        self._copies: Copies | None = None
        self._orphan_timer: asyncio.TimerHandle | None = None
        self._orphan_thread: threading.Thread | None = None
        self._gpu_watch: GpuWatch | None = None
        self._helper = GpuHelper(on_read=self._on_gpus)
        self._installed: Installed | None = None  # until its files are read
        self._slow: str | None = None

    def start(self) -> None:
        """Start tracking; call this on the running event loop. Does nothing if tfguard is switched off."""
        if not self._settings.active:
            return
        self._loop = asyncio.get_running_loop()
        self._app.event_logger.register_event_schema(EVENT_SCHEMA_FILE)
        self._slow = slow_recordings()
        copies = copies_folder()
        if copies is not None:
            # Kernels do not write to the data folder directly here; their recordings are copied there.
            self._copies = Copies(recordings_folder(), copies)
        self._postmortem = postmortem = Postmortem(
            recordings_folder(),
            self.store,
            self._settings,
            copies=copies,
            settle=None if self._copies is None else self._copies.settle,
            in_hand=lambda identity: tracker.has_in_hand(identity),
            on_report=self._on_report,
            on_saved=lambda: self._on_loop(self.on_list_changed),
            on_failure=lambda crash, bad, fix: log_failure(self._app.log, crash, bad, fix),
            is_upgraded=self._is_upgraded,
        )
        self._watcher = Watcher(
            recordings_folder(),
            postmortem.handle,
            lambda monitored: tracker.gone(monitored),
            gpus=self._helper.read,
            busy_hertz=self._settings.busy_hertz,
            idle_hertz=self._settings.idle_hertz,
            hang_seconds=self._settings.hang_seconds,
        )
        self._gpu_watch = GpuWatch(self._watcher.gpu_map)
        self._tracker = tracker = KernelTracker(
            self._app,
            self._watcher,
            self._on_asked_end,
            lambda: self._find_orphans_in(_MISSED_SECONDS),
        )
        tracker.start()
        atexit.register(self._mark_ends)  # Ctrl-C may end a server without its stop()
        if self._copies is not None:
            self._copies.start()
        threading.Thread(target=self._load, name="tfguard-load", daemon=True).start()
        self._find_orphans()
        self._read_gpus()

    def _load(self) -> None:
        """Load what a report needs: an upgrade under the running server replaces the files."""
        with shielded("loading the parts of a report"):
            self._installed = Installed()
            rehearse()

    def _is_upgraded(self) -> bool:
        return self._installed is not None and self._installed.is_other()

    def _find_orphans(self) -> None:
        """Report crashes of untracked kernels: at the start, every five minutes, and if the tracker missed an end."""
        if self._orphan_thread is None or not self._orphan_thread.is_alive():
            self._orphan_thread = threading.Thread(
                target=self._report_unwatched, name="tfguard-files", daemon=True
            )
            self._orphan_thread.start()
            self._find_orphans_in(FRESH_SECONDS)
        else:
            self._find_orphans_in(_ORPHANS_BUSY_SECONDS)

    def _find_orphans_in(self, seconds: float) -> None:
        if self._orphan_timer is not None:
            self._orphan_timer.cancel()
        assert self._loop is not None
        self._orphan_timer = self._loop.call_later(seconds, self._find_orphans)

    def _report_unwatched(self) -> None:
        assert self._postmortem is not None
        with shielded("reports of kernels that died without a server"):
            self._postmortem.handle_unwatched()

    def _on_asked_end(self, identity: ProcessIdentity, kernel_id: str) -> None:
        assert self._postmortem is not None
        postmortem = self._postmortem

        def forget() -> None:  # may wait for a file server
            with shielded("removing the recording of a kernel that was shut down"):
                postmortem.forget(identity, kernel_id)

        threading.Thread(target=forget, name="tfguard-files", daemon=True).start()

    def _on_report(self, entry: Entry) -> None:
        log_crash(self._app.log, entry)
        view = self._tracker.view(entry["kernel_id"]) if self._tracker is not None else None
        if entry["kernel_alive"] and view is not None and view.monitored is not None:
            facts = tuple(entry["because"])
            view.monitored.reported_kill = ReportedKill(died_of(entry["id"]), facts)
        # Open pages show the report, so the next kernel need not print it into the notebook.
        if self._clients:
            with shielded("marking a report as announced"):
                self.store.mark(entry["id"], ANNOUNCED)

        def emit() -> None:
            with shielded("sending the event of a crash"):
                self._app.event_logger.emit(schema_id=EVENT_SCHEMA, data=event_data(entry))
            # For pages without an event stream; for pages that received the event this changes nothing.
            self._hint_crashes(to_hidden=True)

        self._on_loop(emit)

    def _on_loop(self, call: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: no page is connected
                self._loop.call_soon_threadsafe(call)

    def on_list_changed(self) -> None:
        """Notify all pages that a report was read or deleted. Call this on the server's event loop."""
        self._hint_crashes(to_hidden=False)

    def _hint_crashes(self, to_hidden: bool) -> None:
        for client in list(self._clients):
            with shielded("notifying a page of a crash"):
                client.hint_crashes(to_hidden)

    def _on_gpus(self, gpus: Gpus) -> None:
        """Called in the thread that reads the helper's output."""
        if self._gpu_watch is not None:
            self._gpu_watch.take(gpus)

    def _read_gpus(self) -> None:
        """Once a second: start the helper if a page is open or a kernel runs; the helper is killed if it hangs."""
        assert self._loop is not None
        if self._clients or (self._tracker is not None and self._tracker.has_kernels):
            with shielded("reading the GPUs"):
                self._helper.want()
        self._gpu_timer = self._loop.call_later(_GPU_SECONDS, self._read_gpus)

    def _mark_ends(self) -> None:
        """Mark the recordings when the server and its kernels end, so that they are not taken for crashes."""
        atexit.unregister(self._mark_ends)
        root = recordings_folder()
        for monitored in self._watcher.monitored_kernels if self._watcher is not None else ():
            recorder = recorder_of(root, monitored.identity, monitored.kernel.kernel_id)
            mark_end(root / recorder.folder_name, "server_stopped")

    async def stop(self) -> None:
        """Stop threads, helper and connections. Kernels that end later are not reported."""
        await asyncio.to_thread(self._mark_ends)
        for timer in (self._gpu_timer, self._orphan_timer):
            if timer is not None:
                timer.cancel()
        for client in list(self._clients):
            with contextlib.suppress(Exception):
                client.leave()
        if self._tracker is not None:
            await self._tracker.stop()
        if self._watcher is not None:
            await asyncio.to_thread(self._watcher.stop)
        if self._copies is not None:
            await asyncio.to_thread(self._copies.stop)
        await asyncio.to_thread(self._helper.stop)
        if self._postmortem is not None:
            await asyncio.to_thread(self._postmortem.save_kept)

    # --- for the routes ------------------------------------------------------------------------------------------

    def client_came(self, client: OpenPage) -> None:
        """A page has opened its stream."""
        self._clients.add(client)

    def client_went(self, client: OpenPage) -> None:
        """A page has closed its stream."""
        self._clients.discard(client)

    def gpus(self) -> dict[str, Any]:
        """``Gpus`` of the wire."""
        return self._gpus.state()

    @property
    def _gpus(self) -> GpuView:
        if not self._settings.active:
            return GpuView(None, Gpus("unavailable", DISABLED))
        return GpuView(self._gpu_watch, self._helper.read())

    def kernels(self) -> list[dict[str, Any]]:
        """``KernelState`` of every kernel."""
        gpus = self._gpus
        return [kernel_state(view, gpus) for view in self._views()]

    def tick(self, kernel_id: str | None) -> dict[str, Any]:
        """The ``tick`` message for a page that shows this kernel."""
        views, gpus = self._views(), self._gpus
        kernel = next((v for v in views if v.kernel.kernel_id == kernel_id), None)
        return {
            "kernel": kernel_state(kernel, gpus) if kernel else None,
            "others": [other_kernel(view, gpus) for view in views if view is not kernel],
            "gpus": gpus.state(kernel_id),
        }

    def number(self, kernel_id: str) -> dict[str, Any] | None:
        """The ``number`` message of this kernel; None for an unknown kernel."""
        view = self._tracker.view(kernel_id) if self._tracker else None
        return None if view is None else number(view)

    def limits_ahead(self) -> list[dict[str, Any]]:
        """``LimitAhead`` of every kernel whose memory grows toward its limit."""
        return [found for view in self._views() if (found := limit_ahead(view)) is not None]

    def sampled_at(self, kernel_id: str) -> float | None:
        """Unix seconds of the newest sample of this kernel; None if there is none."""
        view = self._tracker.view(kernel_id) if self._tracker else None
        return None if view is None or view.monitored is None else view.monitored.sampled_at

    def history(self, kernel_id: str) -> dict[str, Any]:
        """The ``history`` message of this kernel."""
        view = self._tracker.view(kernel_id) if self._tracker else None
        return history(view, kernel_id, self._gpus)

    def stacks(self, kernel_id: str) -> list[str] | None:
        """Python stacks of all threads of a kernel; empty if it returns none, None for an untracked kernel.

        Takes up to some seconds. Thread-safe.
        """
        view = self._tracker.view(kernel_id) if self._tracker is not None else None
        monitored = view.monitored if view is not None else None
        if self._watcher is None or monitored is None:
            return None
        return self._watcher.hangs.stacks(monitored)

    def options(self) -> list[dict[str, Any]]:
        """The options with their values in this server. Reads the per-user file."""
        return options_json(self._settings, self._app.config)

    def problems(self) -> list[dict[str, Any]]:
        """Current problems, newest first. Reads files. Thread-safe."""
        upgraded = self._is_upgraded()
        return problems(
            read_problems(),
            active=self._settings.active,
            is_upgraded=upgraded,
            unsaved=self.store.unsaved(),
            slow=self._slow,
        )

    def _views(self) -> list[KernelView]:
        if self._tracker is not None:
            return self._tracker.views()
        return []
