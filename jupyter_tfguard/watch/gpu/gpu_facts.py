"""GPU facts recorded with a crash: memory per process before it, driver events around it, the last minutes as rows.

The structure is described in ``diagnosis/gpus.py``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..monitored import MonitoredKernel
from .gpu_cards import Card, GpuHolder, is_about, notebook_path
from .gpu_history import COLUMNS
from .gpu_map import GpuMap, GpuSnapshot

NEAR_SECONDS = 60.0
# A process that is ending leaves the driver's list before it has ended.
_STILL_LISTED_SECONDS = 10.0
_NEWS_WAIT_SECONDS = 1.2  # one tick of the helper, plus a margin
_MINUTES, _END_SECONDS = 1440, 120.0
_CRASHES = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP")


def wait_for_word(
    gpu_map: GpuMap, monitored: MonitoredKernel, signal: str | None, code: int | None, died: float
) -> None:
    """Wait for what the driver reports just after a crash: an Xid, or a lost card.

    Waits only for a kernel that held GPU memory and ended by itself. Kernels that ended together wait for the same
    update.
    """
    by_itself = signal in _CRASHES or (signal is None and code != 0)
    if by_itself and gpu_map.held(monitored):
        gpu_map.wait_for_news(died, _NEWS_WAIT_SECONDS)


def gpu_facts(
    gpu_map: GpuMap, monitored: MonitoredKernel, died: float
) -> tuple[dict[str, Any], ...]:
    """What is known about each card at the time of a crash.

    Args:
        died: Unix seconds.
    """
    snapshots = gpu_map.snapshots
    if not snapshots or died - snapshots[-1].time > NEAR_SECONDS:
        return ()
    newest, before = snapshots[-1], _snapshot_before(snapshots, monitored, died)
    events = [e for e in gpu_map.gpus.events if abs(e.get("time", 0.0) - died) < NEAR_SECONDS]
    earlier = {card.key: card for card in before.cards} if before is not None else {}
    return tuple(
        _card(
            gpu_map,
            monitored,
            card,
            earlier.get(card.key),
            before.time if before is not None else None,
            [event for event in events if is_about(event, card, newest.cards)],
        )
        for card in newest.cards
    )


def _snapshot_before(
    snapshots: tuple[GpuSnapshot, ...], monitored: MonitoredKernel, died: float
) -> GpuSnapshot | None:
    """The newest snapshot before the crash that still shows the kernel's memory; else the newest before it."""
    before = [snapshot for snapshot in snapshots if snapshot.time <= died]
    for snapshot in reversed(before):
        if died - snapshot.time > _STILL_LISTED_SECONDS:
            break
        if any(card.own_bytes(monitored) for card in snapshot.cards):
            return snapshot
    return before[-1] if before else None


def _card(
    gpu_map: GpuMap,
    monitored: MonitoredKernel,
    newest: Card,
    before: Card | None,
    read_at: float | None,
    events: list[dict[str, Any]],
) -> dict[str, Any]:
    own, history = gpu_map.history(newest.key, monitored), gpu_map.history(newest.key)
    # A day of rows is useful for a card that the kernel used, and too much for other cards.
    minutes = _MINUTES // max(1, gpu_map.used_count(monitored))
    rows = own.rows(minutes) if own else history.recent(_END_SECONDS) if history else []
    growth = gpu_map.growth_on(newest.key, monitored)
    holders = before.holders if before is not None else None
    # The driver has no numbers of a lost card: use those from before.
    known = before.device if before is not None else {}
    device = {
        key: known.get(key) if value is None else value for key, value in newest.device.items()
    }
    return device | {
        "processes": None if holders is None else [_process(holder) for holder in holders],
        "processes_time": read_at,
        "processes_reason": before.note if before is not None else newest.note,
        "growth": None if growth is None else asdict(growth),
        "columns": ["time", *COLUMNS],
        "rows": [list(row) for row in rows],
        "events": [{"time": event.get("time"), "xid": event.get("xid")} for event in events],
    }


def _process(holder: GpuHolder) -> dict[str, Any]:
    monitored = holder.monitored
    return {
        "pid": holder.pid,
        "used_bytes": holder.used_bytes,
        "name": holder.name,
        "kernel_id": monitored.kernel.kernel_id if monitored is not None else None,
        "notebook_path": notebook_path(monitored) if monitored is not None else None,
    }
