"""What only the server knows of a kernel, added to what every panel shows (:mod:`~.report.live`); from data in memory."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import Any

from ..diagnosis.seen_hang import RUNNING, line_of, wait_text
from ..kernelspecs.command import python_command
from ..memory.limits import binding_limit, memory_in_use
from ..metrics import Sample
from ..places import DISABLE_VARIABLE
from ..report import live as shown
from ..watch.gpu.gpu_cards import notebook_path as path_of
from ..watch.gpu.gpu_helper import Gpus
from ..watch.live.forecast import Forecast
from ..watch.live.live import Live
from ..watch.live.own_rise import OwnRise
from ..watch.monitored import Kernel, MonitoredKernel
from .gpu_state import GpuWatch

REMOTE = "remote kernel, not tracked here"
STARTING = "starting"
_SWITCHED_OFF = f"The guard is turned off in this kernel by {DISABLE_VARIABLE}."
_NOT_LOADED = "The guard is not loaded in this kernel: it is not enabled there, it is turned off, or a script without `exec` starts the kernel."
_GUARD_WAIT_SECONDS = 10.0
# Warn of a limit that is expected this soon, or that is this full while the kernel grew by this fraction of it.
_SOON_SECONDS = 300.0
_NEAR_FRACTION = 0.9
_RISE_FRACTION = 0.01  # of the limit, in the two minutes that the history keeps
# Below this a run is warned of only shortly before the limit: loading data often ends long before it.
_EARLY_FRACTION = 0.6
_EARLY_SECONDS = 60.0


@dataclass(frozen=True)
class KernelView:
    """One kernel of the server, tracked or not.

    Attributes:
        kernel: What the server knows about the kernel.
        language: From the kernel's specification; None = unknown.
        monitored: None if it is not tracked.
        unwatched_reason: Why it is not tracked.
        run_since: Start of the current or last busy period, Unix seconds; None = unknown. Short pauses between cells
            are part of it.
        argv: Command in the kernel's specification; None = unknown.
        fix: Command that loads the guard in a kernel without it; None = not known yet, or not needed.
    """

    kernel: Kernel
    language: str | None
    monitored: MonitoredKernel | None
    unwatched_reason: str | None
    run_since: float | None = None
    argv: tuple[str, ...] | None = None
    fix: str | None = None


@dataclass(frozen=True)
class GpuView:
    """The GPUs as they are now.

    Attributes:
        watch: None if GPUs are not read.
        gpus: The state from the helper.
    """

    watch: GpuWatch | None
    gpus: Gpus

    def state(self, kernel_id: str | None = None) -> dict[str, Any]:
        """``Gpus`` of the wire, for a page that shows this kernel."""
        if self.watch is None:
            return {"state": self.gpus.state, "reason": self.gpus.reason, "devices": []}
        return self.watch.state(self.gpus, kernel_id)


NO_GPUS = GpuView(None, Gpus("unavailable", "not read"))


def kernel_state(view: KernelView, gpus: GpuView = NO_GPUS) -> dict[str, Any]:
    """``KernelState`` of the wire."""
    monitored = view.monitored
    live = monitored.live if monitored else Live()
    guard = _guard(view, live)
    if gpus.watch is not None:
        guard["growth"] = gpus.watch.growth(guard["growth"], monitored)
    return {
        "kernel_id": view.kernel.kernel_id,
        "pid": monitored.identity.pid if monitored else None,
        "kernel_name": view.kernel.kernel_name,
        "notebook_path": notebook_path(view),
        "watched": monitored is not None,
        "unwatched_reason": None if monitored else view.unwatched_reason,
        "guard": guard,
        **shown.kernel(live, _latest(monitored), _forecast(monitored)),
        "hang": _hang(view),
        "gpu": gpus.watch.of_kernel(monitored, gpus.gpus) if gpus.watch is not None else None,
        "cells": list(live.cells),
        "gpu_oom": live.gpu_oom,
        "memory_stop": live.memory_stop,
        "leak": live.memory_growth,
    }


def other_kernel(view: KernelView, gpus: GpuView = NO_GPUS) -> dict[str, Any]:
    """``OtherKernel`` of the wire: one line for a kernel whose notebook is not active."""
    rss = shown.fresh(_latest(view.monitored)).get("process.rss_bytes")
    return {
        "kernel_id": view.kernel.kernel_id,
        "notebook_path": notebook_path(view),
        "kernel_name": view.kernel.kernel_name,
        "rss_bytes": shown.whole(rss),
        "gpu_bytes": None if gpus.watch is None else gpus.watch.bytes_of(view.monitored, gpus.gpus),
    }


def limit_ahead(view: KernelView) -> dict[str, Any] | None:
    """``LimitAhead`` of the wire: a busy kernel whose own memory grows toward its limit; None for any other kernel.

    In a container the limit counts other kernels too. A kernel that does not grow while another one grows is left out.
    """
    monitored, values = view.monitored, shown.fresh(_latest(view.monitored))
    limit = binding_limit(values)
    used = memory_in_use(limit, values)
    if monitored is None or limit is None or used is None or not monitored.is_busy:
        return None
    rise = OwnRise.of(monitored.history.rows, view.run_since)
    left = limit.size_bytes - used
    forecast = monitored.forecast()
    is_soon = forecast is not None and forecast.seconds_left <= _SOON_SECONDS
    if is_soon and forecast is not None and used < _EARLY_FRACTION * limit.size_bytes:
        # A run that has not yet added as much as is left may well end before.
        is_soon = forecast.seconds_left < _EARLY_SECONDS and rise.whole_bytes >= left
    is_near = used > _NEAR_FRACTION * limit.size_bytes
    if not is_soon and not (is_near and rise.goes_on(_RISE_FRACTION * limit.size_bytes)):
        return None
    return {
        "kernel_id": view.kernel.kernel_id,
        "notebook_path": notebook_path(view),
        "run": f"{monitored.identity.pid} {view.run_since}",
        "limit": limit.state(),
        "is_soon": is_soon,
    }


def number(view: KernelView) -> dict[str, Any]:
    """The ``number`` message: the values that change fastest, and those for the status bar."""
    monitored = view.monitored
    return {
        "type": "number",
        "time": time.time(),
        "kernel_id": view.kernel.kernel_id,
        "pid": monitored.identity.pid if monitored else None,
        "watched": monitored is not None,
        "host": shown.host(_latest(monitored), _forecast(monitored)),
        "hang": _hang(view),
    }


def history(view: KernelView | None, kernel_id: str, gpus: GpuView = NO_GPUS) -> dict[str, Any]:
    """The ``history`` message: the last 10 minutes of a kernel; empty for an untracked kernel."""
    monitored = view.monitored if view else None
    rows = monitored.history.chart.read() if monitored else []
    return {
        "type": "history",
        "kernel_id": kernel_id,
        "rows": [[when, shown.whole(used)] for when, used in rows],
        "gpu_rows": gpus.watch.history(monitored) if gpus.watch is not None and monitored else {},
        "marks": list(monitored.live.marks) if monitored else [],
    }


def notebook_path(view: KernelView) -> str | None:
    """From the server's sessions, else from the kernel's header."""
    if view.kernel.notebook_path is not None or view.monitored is None:
        return view.kernel.notebook_path
    return path_of(view.monitored)


def _guard(view: KernelView, live: Live) -> dict[str, Any]:
    if view.monitored is None:
        return shown.guard(loaded=None, text="not known")
    if live.header is not None:
        return shown.guard(live.header.get("guard"))
    if view.language is not None and view.language.lower() != "python":
        text = "Not a Python kernel: only memory and crashes are recorded."
        return shown.guard(loaded=False, text=text)
    if view.monitored.is_switched_off:
        return shown.guard(loaded=False, text=_SWITCHED_OFF)
    if not lacks_guard(view.monitored):
        return shown.guard(loaded=None, text=STARTING)
    if view.argv is not None and python_command(view.argv) is None:
        text = f"The guard is not loaded in this kernel: {os.path.basename(view.argv[0])} starts it, not ipykernel."
        return shown.guard(loaded=False, text=text)
    return shown.guard(loaded=False, text=_NOT_LOADED, fix=view.fix)


def lacks_guard(monitored: MonitoredKernel) -> bool:
    """True if a guard in the kernel would have started to record by now, but none has."""
    return (
        monitored.live.header is None and time.monotonic() - monitored.since >= _GUARD_WAIT_SECONDS
    )


def _latest(monitored: MonitoredKernel | None) -> Sample | None:
    return monitored.latest if monitored is not None else None


def _forecast(monitored: MonitoredKernel | None) -> Forecast | None:
    return monitored.forecast() if monitored is not None else None


def _hang(view: KernelView) -> dict[str, Any] | None:
    hang = view.monitored.hang if view.monitored else None
    if hang is None:
        return None
    kill = view.monitored.reported_kill if view.monitored else None
    # The time of a report is in whole seconds.
    is_of_run = kill is not None and kill.time >= (view.run_since or math.inf) - 1
    waits = is_of_run and hang.wait != RUNNING
    return {
        "since": hang.since,
        "in_fit": hang.in_fit,
        "computes": hang.wait == RUNNING,
        "text": wait_text(hang.wait),
        "line": line_of(hang.stacks, hang.main_thread, hang.wait),
        "has_stacks": bool(hang.stacks),
        "worker_killed": list(kill.facts) if kill is not None and waits else None,
    }
