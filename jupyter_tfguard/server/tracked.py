"""A kernel of this server, and what belongs to it while it is watched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ..watch.witness import Kernel, Witness
from .activity import Activity
from .managers import command, execution_state, language
from .state import STARTING, KernelView


class Tracked:
    """A kernel id, the process behind it now, and what was hung onto both; as it is made, no process is looked at yet."""

    def __init__(self, kernel_id: str, manager: Any) -> None:
        self.witness: Witness | None = None
        activity = Activity(manager, in_cell=lambda: _runs_cell(self.witness))
        self.kernel = Kernel(
            kernel_id,
            kernel_name=getattr(manager, "kernel_name", None) or None,
            is_busy=activity.is_busy,
            runs_cell=activity.runs_cell,
            is_ending=lambda: bool(getattr(manager, "shutting_down", False)),
            heard_count=activity.heard_count,
        )
        self.manager = manager
        self.activity = activity
        self.since = time.monotonic()
        self.reader: int | None = None
        self.search: asyncio.Future[int | None] | None = None  # for a recording
        self.search_next = 0.0
        self.reason: str | None = STARTING
        self.callbacks: list[tuple[Callable[[], None], str]] = []


def view_of(tracked: Tracked) -> KernelView:
    """For the panel."""
    state, witness = execution_state(tracked.manager), tracked.witness
    if state == "idle" and _runs_cell(witness):
        state = "busy"
    return KernelView(
        kernel=tracked.kernel,
        execution_state=state,
        language=language(tracked.manager),
        witness=tracked.witness,
        unwatched_reason=tracked.reason,
        run_since=tracked.activity.run_since(),
        argv=command(tracked.manager),
    )


def _runs_cell(witness: Witness | None) -> bool:
    return witness is not None and witness.live.runs_cell
