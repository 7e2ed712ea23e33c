"""Builds the GPU part of the panel from data in memory; reads nothing."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from .. import growth_texts as words
from ..diagnosis.gpu_health import Alarm, CardHealth
from ..report.live import tensors
from ..shield import shielded
from ..watch.gpu.gpu_cards import Card, GpuHolder, is_about, notebook_path
from ..watch.gpu.gpu_helper import Gpus
from ..watch.gpu.gpu_map import GpuMap
from ..watch.history import CHART_SECONDS
from ..watch.monitored import MonitoredKernel

NUMBERS = (
    "memory_total_bytes",
    "memory_used_bytes",
    "utilization_fraction",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
)


class GpuWatch:
    """The cards and their health.

    Args:
        gpu_map: GPU memory per kernel.
    """

    def __init__(self, gpu_map: GpuMap) -> None:
        self._map = gpu_map
        self._health: dict[str, CardHealth] = {}

    def take(self, gpus: Gpus) -> None:
        """Process the newest state from the helper, in the thread that reads its lines."""
        with shielded("assigning GPU memory to kernels"):
            self._map.take(gpus)
        with shielded("checking the health of the GPUs"):
            snapshot = self._map.now
            monitored_kernels = self._map.monitored_kernels
            for card in snapshot.cards:
                health = self._health.setdefault(card.key, CardHealth())
                whole = card.device.get("mig_index") is None
                events = [e for e in gpus.events if whole and is_about(e, card, snapshot.cards)]
                health.take(
                    card.device, events, snapshot.time, at_work=_at_work(card, monitored_kernels)
                )

    def state(self, gpus: Gpus, kernel_id: str | None = None) -> dict[str, Any]:
        """``Gpus`` of the wire.

        Args:
            gpus: The state from the helper.
            kernel_id: The kernel that the page shows.
        """
        cards = self._map.now.cards if gpus.state == "ok" else ()
        devices = [_device(card, kernel_id, self._alarms(card)) for card in cards]
        return {"state": gpus.state, "reason": gpus.reason, "devices": devices}

    def _alarms(self, card: Card) -> tuple[Alarm, ...]:
        health = self._health.get(card.key)
        return health.alarms if health is not None else ()

    def of_kernel(self, monitored: MonitoredKernel | None, gpus: Gpus) -> dict[str, Any] | None:
        """``kernel.gpu`` of the wire; None without GPUs."""
        if monitored is None or gpus.state != "ok":
            return None
        cards = self._map.now.cards
        if not cards:
            return None
        tensorflow = [
            {
                **tensors(memory),
                "gpu_uuid": next(
                    (
                        card.device.get("gpu_uuid")
                        for card in cards
                        if card.tensorflow(monitored) is memory
                    ),
                    None,
                ),
            }
            for memory in monitored.live.gpu_memory
        ]
        return {"bytes": self._map.own_bytes(monitored), "tensorflow": tensorflow}

    def history(self, monitored: MonitoredKernel) -> dict[str, list[list[float | None]]]:
        """Memory of a kernel on each card in the last 10 minutes: Unix seconds and bytes, by the card's UUID."""
        oldest = time.time() - CHART_SECONDS
        found = {}
        for card in self._map.now.cards:
            kept = self._map.history(card.key, monitored)
            if kept is not None:
                found[_uuid(card)] = [
                    [moment, own] for moment, own, *_ in kept.recent() if (moment or 0) >= oldest
                ]
        return found

    def bytes_of(self, monitored: MonitoredKernel | None, gpus: Gpus) -> int | None:
        """Bytes that a kernel holds on all cards; None = unknown."""
        return (
            self._map.own_bytes(monitored) if monitored is not None and gpus.state == "ok" else None
        )

    def growth(
        self, growth: dict[str, str] | None, monitored: MonitoredKernel | None
    ) -> dict[str, str] | None:
        """Memory growth as reported by the kernel, corrected by the observation from outside."""
        if growth is None or growth["state"] != "on" or monitored is None:
            return growth
        seen = self._map.growth(monitored)
        if seen is None:
            return growth
        if seen.works:
            text = words.seen_working(growth["text"], seen.own_bytes, seen.total_bytes)
            return {"state": "proven", "text": text}
        text = words.seen_not_in_force(seen.own_bytes, seen.total_bytes, seen.used_bytes)
        return {"state": "not_in_force", "text": text}


def _device(card: Card, kernel_id: str | None, alarms: tuple[Alarm, ...]) -> dict[str, Any]:
    device = card.device
    holders = None if card.holders is None else _rows(card.holders, kernel_id)
    return {
        "nvml_index": device.get("nvml_index"),
        "mig_index": device.get("mig_index"),
        "gpu_uuid": _uuid(card),
        "name": device.get("name") or "GPU",
        **{name: device.get(name) for name in NUMBERS},
        "lost": device.get("lost") is True,
        "holders": holders,
        "other_bytes": card.other_bytes,
        "note": card.note,
        "alarms": [asdict(alarm) for alarm in alarms],
    }


def _uuid(card: Card) -> str:
    return card.device.get("gpu_uuid") or card.key


def _rows(holders: tuple[GpuHolder, ...], kernel_id: str | None) -> list[dict[str, Any]]:
    """One row per kernel with all its children, one per other process; largest first."""
    rows: dict[object, dict[str, Any]] = {}
    for number, holder in enumerate(holders):
        monitored = holder.monitored
        row = rows.get(monitored) if monitored is not None else None
        if row is not None:
            known = row["used_bytes"] is not None and holder.used_bytes is not None
            row["used_bytes"] = row["used_bytes"] + holder.used_bytes if known else None
            continue
        rows[monitored if monitored is not None else number] = {
            "kernel_id": monitored.kernel.kernel_id if monitored is not None else None,
            "notebook_path": notebook_path(monitored) if monitored is not None else None,
            "name": holder.name,
            "pid": monitored.identity.pid if monitored is not None else holder.pid,
            "used_bytes": holder.used_bytes,
            "is_this": monitored is not None and monitored.kernel.kernel_id == kernel_id,
        }
    return sorted(rows.values(), key=lambda row: -(row["used_bytes"] or 0))


def _at_work(card: Card, monitored_kernels: tuple[MonitoredKernel, ...]) -> bool:
    """True when a kernel trains on this card, as far as is known."""
    training = [one for one in monitored_kernels if (one.live.training or {}).get("active") is True]
    if card.holders is None:
        return bool(training) and bool(card.device.get("utilization_fraction"))
    return any(card.own_bytes(monitored) != 0 for monitored in training)
