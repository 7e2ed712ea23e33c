"""Everything the extension runs in a server, put together: watcher, reports, GPUs, and what the routes answer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import replace
from typing import Any, Protocol

from ..config import TfGuard
from ..places import (
    DISABLE_VARIABLE,
    bundles_folder,
    copies_folder,
    disabled_by_environment,
    recordings_folder,
)
from ..record.alive import FRESH_SECONDS
from ..record.bundle import BundleStore
from ..record.identity import ProcessIdentity
from ..shield import note_problem, shielded
from ..watch.copies import Copies
from ..watch.death import Death
from ..watch.gpu_helper import GpuHelper, Gpus
from ..watch.watcher import Watcher
from .gpu_state import GpuWatch
from .kernels import KernelTracker
from .reporter import EVENT_SCHEMA, EVENT_SCHEMA_FILE, Entry, Reporter, event_data, plain
from .state import GpuView, KernelView, history, kernel_state, other_kernel
from .worker import Worker

DISABLED = "tfguard is switched off"
_GPU_SECONDS = 1.0
_PROBLEM_LIMIT = 20


class Client(Protocol):
    """An open page."""

    def leave(self) -> None:
        """Close the connection."""


class Service:
    """One per server.

    Args:
        serverapp: The Jupyter server.
        settings: The options.
    """

    def __init__(self, serverapp: Any, settings: TfGuard) -> None:
        self._app = serverapp
        self._settings = settings
        self.store = BundleStore(bundles_folder())
        self._clients: set[Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gpu_timer: asyncio.TimerHandle | None = None
        self._watcher: Watcher | None = None
        self._tracker: KernelTracker | None = None
        self._reporter: Reporter | None = None
        self._copies: Copies | None = None
        self._orphans_timer: asyncio.TimerHandle | None = None
        self._orphans_thread: threading.Thread | None = None
        self._asked_ends = Worker("tfguard-files")
        self._gpu_watch: GpuWatch | None = None
        self._helper = GpuHelper(on_read=self._on_gpus)

    def start(self) -> None:
        """Begin to watch; to be called on the running event loop. Does nothing where tfguard is switched off."""
        if not self._settings.active:
            return
        self._loop = asyncio.get_running_loop()
        self._app.event_logger.register_event_schema(EVENT_SCHEMA_FILE)
        self._reporter = Reporter(
            recordings_folder(),
            self.store,
            self._settings,
            self._app.log,
            self._on_report,
            backlog=lambda: self._watcher.backlog if self._watcher else 0,
        )
        self._watcher = Watcher(
            recordings_folder(),
            self._on_death,
            lambda witness: self._tracker.gone(witness) if self._tracker else None,
            gpus=self._helper.read,
            busy_hertz=self._settings.busy_hertz,
            idle_hertz=self._settings.idle_hertz,
            hang_seconds=self._settings.hang_seconds,
        )
        self._gpu_watch = GpuWatch(self._watcher.gpu_map)
        self._tracker = KernelTracker(self._app, self._watcher, self._on_asked_end)
        self._tracker.start()
        self._start_copies(self._watcher)
        self._look_for_orphans()
        self._look_at_gpus()

    def _start_copies(self, watcher: Watcher) -> None:
        """Where kernels may not write to the data folder itself, what they write is carried there."""
        target = copies_folder()
        if target is not None:
            self._copies = Copies(
                recordings_folder(), target, lambda: [w.identity for w in watcher.witnesses]
            )
            self._copies.start()

    def _in_thread(self, work: Any, *args: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, name="tfguard-files", daemon=True)
        thread.start()
        return thread

    def _look_for_orphans(self) -> None:
        """At the start, and again and again: a kernel of another machine is known to be dead by its silence only."""
        assert self._loop is not None
        assert self._reporter is not None
        if self._orphans_thread is None or not self._orphans_thread.is_alive():
            self._orphans_thread = self._in_thread(self._reporter.report_orphans)
        self._orphans_timer = self._loop.call_later(FRESH_SECONDS, self._look_for_orphans)

    def _on_death(self, death: Death) -> None:
        assert self._reporter is not None
        if self._copies is not None and not death.facts.kernel_alive:
            death = replace(death, recording=self._copies.settle(death.identity))
        self._reporter.report(death)

    def _on_asked_end(self, identity: ProcessIdentity) -> None:
        self._asked_ends.submit(lambda: self._forget(identity))

    def _forget(self, identity: ProcessIdentity) -> None:
        if self._copies is not None:
            self._copies.settle(identity)
        if self._reporter is not None:
            self._reporter.forget(identity)

    def _on_report(self, entry: Entry) -> None:
        def emit() -> None:
            with shielded("the event of a kernel's death"):
                self._app.event_logger.emit(schema_id=EVENT_SCHEMA, data=event_data(entry))

        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens any more
                self._loop.call_soon_threadsafe(emit)

    def _on_gpus(self, gpus: Gpus) -> None:
        """In the thread that reads what the helper tells."""
        if self._gpu_watch is not None:
            self._gpu_watch.take(gpus)

    def _look_at_gpus(self) -> None:
        """Once a second: the helper starts when somebody looks or a kernel runs, and is given up when it hangs."""
        assert self._loop is not None
        if self._clients or (self._tracker is not None and self._tracker.has_kernels):
            with shielded("reading the GPUs"):
                self._helper.want()
        self._gpu_timer = self._loop.call_later(_GPU_SECONDS, self._look_at_gpus)

    async def stop(self) -> None:
        """End everything: threads, helper, connections. Kernels that end from here on make no report."""
        for timer in (self._gpu_timer, self._orphans_timer):
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

    # --- for the routes ------------------------------------------------------------------------------------------

    def client_came(self, client: Client) -> None:
        """A page has opened its stream."""
        self._clients.add(client)

    def client_went(self, client: Client) -> None:
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
        """The ``tick`` of a page that looks at this kernel."""
        views, gpus = self._views(), self._gpus
        kernel = next((v for v in views if v.kernel.kernel_id == kernel_id), None)
        return {
            "kernel": kernel_state(kernel, gpus) if kernel else None,
            "others": [other_kernel(view, gpus) for view in views if view is not kernel],
            "gpus": gpus.state(kernel_id),
        }

    def history(self, kernel_id: str) -> dict[str, Any]:
        """The ``history`` of this kernel."""
        return history(self._tracker.view(kernel_id) if self._tracker else None, kernel_id)

    def stacks(self, kernel_id: str) -> list[str] | None:
        """Python stacks of all threads of a kernel; empty where it gives none, None for a kernel that is not watched.

        Takes up to some seconds; for any thread.
        """
        view = self._tracker.view(kernel_id) if self._tracker is not None else None
        if view is None or view.witness is None or self._watcher is None:
            return None
        return self._watcher.stacks(view.witness)

    def problems(self, noted: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What does not work, newest first, each with what to do about it.

        Args:
            noted: As :func:`~..shield.read_problems` gives them.
        """
        found: list[dict[str, Any]] = []
        if not self._settings.active:
            fix = "c.TfGuard.enabled = True in the configuration, or remove the option."
            if disabled_by_environment():
                fix = f"Start Jupyter without {DISABLE_VARIABLE}."
            found.append({"what": DISABLED, "fix": fix})
        if self._copies is not None and (slow := self._copies.problem):
            found.append({"what": slow, "fix": "Set TFGUARD_DIR to a folder on a local disk."})
        for entry in reversed(noted[-_PROBLEM_LIMIT:]):
            what = f"{entry.get('place')}: {entry.get('what')}"
            found.append({"what": what, "fix": str(entry.get("fix") or "")})
        return found

    def _views(self) -> list[KernelView]:
        if self._tracker is not None:
            return self._tracker.views()
        return []


def note_start_failure(bad: BaseException) -> str:
    """Write down why the extension could not start, and the sentence for the server's log."""
    fix = "Kernels run as without it; `jupyter tfguard doctor` tells more."
    note_problem("starting the server extension", bad, fix=fix)
    return f"tfguard could not start ({plain(f'{type(bad).__name__}: {bad}')}). {fix}"
