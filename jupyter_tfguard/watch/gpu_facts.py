"""What is kept of the GPUs with a death: who held what before it, what the driver told near it, the last minutes as rows.

The shape is told in ``diagnosis/gpus.py``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .gpu_cards import Card, Holder, is_about, notebook_path
from .gpu_history import COLUMNS
from .gpu_map import GpuMap, Look
from .monitored import MonitoredKernel

NEAR_SECONDS = 60.0
# A process that is being taken down leaves the driver's list before it is dead.
_STILL_LISTED_SECONDS = 10.0
_NEW_LOOK_SECONDS = 1.2  # one tick of the helper, and a little
_MINUTES, _END_SECONDS = 1440, 120.0
_CRASHES = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP")


def wait_for_word(
    gpu_map: GpuMap, monitored: MonitoredKernel, signal: str | None, code: int | None, died: float
) -> None:
    """Wait for what the driver tells a moment after a death: an Xid, or that a card is gone.

    Only for a kernel that held memory of a GPU and ended by itself; all that ended together wait for the same word.
    """
    by_itself = signal in _CRASHES or (signal is None and code != 0)
    if by_itself and gpu_map.held(monitored):
        gpu_map.wait_for_news(died, _NEW_LOOK_SECONDS)


def gpu_facts(
    gpu_map: GpuMap, monitored: MonitoredKernel, died: float
) -> tuple[dict[str, Any], ...]:
    """The cards of a death, each as far as it is known.

    Args:
        died: Unix seconds.
    """
    looks = gpu_map.looks
    if not looks or died - looks[-1].time > NEAR_SECONDS:
        return ()
    newest, before = looks[-1], _look_before(looks, monitored, died)
    events = [e for e in gpu_map.gpus.events if abs(e.get("time", 0.0) - died) < NEAR_SECONDS]
    told = {card.key: card for card in before.cards} if before is not None else {}
    return tuple(
        _card(
            gpu_map,
            monitored,
            card,
            told.get(card.key),
            before.time if before is not None else None,
            [event for event in events if is_about(event, card, newest.cards)],
        )
        for card in newest.cards
    )


def _look_before(looks: tuple[Look, ...], monitored: MonitoredKernel, died: float) -> Look | None:
    """The newest look before the death that still shows what the kernel held; else the newest before it."""
    before = [look for look in looks if look.time <= died]
    for look in reversed(before):
        if died - look.time > _STILL_LISTED_SECONDS:
            break
        if any(card.own_bytes(monitored) for card in look.cards):
            return look
    return before[-1] if before else None


def _card(
    gpu_map: GpuMap,
    monitored: MonitoredKernel,
    newest: Card,
    before: Card | None,
    looked: float | None,
    events: list[dict[str, Any]],
) -> dict[str, Any]:
    own, history = gpu_map.history(newest.key, monitored), gpu_map.history(newest.key)
    # A day is of use for a card that the kernel used, and long for one that it did not.
    minutes = _MINUTES // max(1, gpu_map.used_count(monitored))
    rows = own.rows(minutes) if own else history.recent(_END_SECONDS) if history else []
    growth = gpu_map.growth_on(newest.key, monitored)
    holders = before.holders if before is not None else None
    # Of a card that is gone the driver has no numbers any more: those from before it count.
    known = before.device if before is not None else {}
    device = {
        key: known.get(key) if value is None else value for key, value in newest.device.items()
    }
    return device | {
        "processes": None if holders is None else [_process(holder) for holder in holders],
        "processes_time": looked,
        "processes_reason": before.note if before is not None else newest.note,
        "growth": None if growth is None else asdict(growth),
        "columns": ["time", *COLUMNS],
        "rows": [list(row) for row in rows],
        "events": [{"time": event.get("time"), "xid": event.get("xid")} for event in events],
    }


def _process(holder: Holder) -> dict[str, Any]:
    monitored = holder.monitored
    return {
        "pid": holder.pid,
        "used_bytes": holder.used_bytes,
        "name": holder.name,
        "kernel_id": monitored.kernel.kernel_id if monitored is not None else None,
        "notebook_path": notebook_path(monitored) if monitored is not None else None,
    }
