"""The guard's routes, answered from a recording. The report is worked out anew, by the rules of today."""

from __future__ import annotations

import asyncio
from typing import Any

from ..config import TfGuard
from ..diagnosis.diagnose import diagnose
from ..diagnosis.typed import dict_of, whole_of
from ..record.bundle import new_bundle_id
from ..report.wire import to_entry_and_report
from ..server.reporter import EVENT_SCHEMA_FILE
from ..server.service import Service
from ..server.state import GpuView
from ..shield import shielded
from ..watch.witness import Kernel
from .gpus import gpus_of
from .tape import Tape
from .tracker import ReplayTracker

REPLAY = "replay, not live"


class ReplayService(Service):
    """One per server.

    Args:
        serverapp, settings: As :class:`~..server.service.Service`.
        tape: The recording.
        speed, before_seconds, loop: As :class:`~.tracker.ReplayTracker`.
    """

    def __init__(
        self,
        serverapp: Any,
        settings: TfGuard,
        tape: Tape,
        *,
        speed: float,
        before_seconds: float,
        loop: bool,
    ) -> None:
        super().__init__(serverapp, settings)
        self._tape = tape
        self._ends: set[asyncio.Task[None]] = set()
        self._replay = ReplayTracker(
            serverapp,
            tape,
            speed=speed,
            before_seconds=before_seconds,
            loop=loop,
            is_seen=lambda: bool(self._clients),
            on_over=self._over,
        )

    def start(self) -> None:
        """Begin; to be called on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._app.event_logger.register_event_schema(EVENT_SCHEMA_FILE)
        self._tracker = self._replay
        self._replay.start()

    def _over(self, kernel: Kernel) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._end(kernel))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _end(self, kernel: Kernel) -> None:
        """What a death brings: its report, the event, and JupyterLab's own dialog."""
        with shielded("the report of a replayed death"):
            entry = await asyncio.to_thread(self._report, kernel.kernel_id)
            self._on_report(entry)
            if not entry["kernel_alive"]:
                self._replay.kill(kernel)

    def _report(self, kernel_id: str) -> dict[str, Any]:
        recorded = self._tape.bundle
        identity = dict_of(recorded.get("identity"))
        pid = whole_of(identity.get("pid"))
        bundle = recorded | {
            "id": new_bundle_id(min(max(pid or 0, 0), 9_999_999_999), self._tape.end),
            "identity": identity | {"kernel_id": kernel_id, "notebook_path": self._tape.notebook},
        }
        entry, report = to_entry_and_report(bundle, diagnose(bundle))
        for known in self.store.ids():
            self.store.remove(known)
        self.store.save(bundle, report, entry)
        return entry

    # --- for the routes ------------------------------------------------------------------------------------------

    @property
    def _gpus(self) -> GpuView:
        return gpus_of(self._replay.player(None))

    def kernels(self) -> list[dict[str, Any]]:
        """As of a server that is live, and marked."""
        return [_marked(state) for state in super().kernels()]

    def tick(self, kernel_id: str | None) -> dict[str, Any]:
        """As of a server that is live, and marked."""
        told = super().tick(kernel_id)
        return told | {"kernel": told["kernel"] and _marked(told["kernel"])}

    def stacks(self, kernel_id: str) -> list[str] | None:
        """Of a recorded kernel nobody can ask any."""
        return None if self._replay.view(kernel_id) is None else []


def _marked(state: dict[str, Any]) -> dict[str, Any]:
    """Says in the panel's header that this is no running kernel."""
    return state | {"guard": state["guard"] | {"loaded": None, "text": REPLAY, "fix": None}}
