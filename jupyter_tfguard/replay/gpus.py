"""The GPUs of a recording, as the server would tell them: what was known of each card before the death."""

from __future__ import annotations

import time
from typing import Any

from ..diagnosis.typed import dict_of, number_of, text_of, whole_of
from ..record.timeline import column
from ..server.gpu_state import GpuWatch
from ..server.state import GpuView
from ..watch.gpu_cards import Card, Holder, key_of
from ..watch.gpu_helper import Gpus
from ..watch.gpu_map import GpuMap, Look
from ..watch.witness import Witness
from .player import Player


class RecordedMap(GpuMap):
    """Who held what, as the recording says."""

    def __init__(self, witness: Witness, cards: tuple[Card, ...]) -> None:
        super().__init__(lambda: (witness,))
        self._look = Look(time.time(), cards)

    @property
    def now(self) -> Look:
        """The cards."""
        return self._look


def gpus_of(player: Player | None) -> GpuView:
    """The cards as they were at the moment that is played."""
    server = dict_of(player.tape.bundle.get("server")) if player is not None else {}
    told = server.get("gpus")
    devices = [dict_of(one) for one in (told if isinstance(told, (list, tuple)) else ())]
    if player is None or not devices:
        why = text_of(dict_of(server.get("unavailable")).get("NVML"))
        return GpuView(None, Gpus("none", why or "The recording tells of no GPU"))
    cards = tuple(_card(device, player) for device in devices)
    watch = GpuWatch(RecordedMap(player.witness, cards))
    return GpuView(watch, Gpus("ok", devices=tuple(devices), time=time.time()))


def _card(device: dict[str, Any], player: Player) -> Card:
    device = _typed(device)
    used = _at(device, "memory_used_bytes", player)
    celsius = _at(device, "temperature_celsius", player)
    now = device | {
        name: value
        for name, value in (("memory_used_bytes", used), ("temperature_celsius", celsius))
        if value is not None
    }
    processes = device.get("processes")
    if not isinstance(processes, list):
        return Card(key_of(device), now, None, None, text_of(device.get("processes_reason")))
    holders = tuple(_holder(dict_of(told), device, player) for told in processes)
    sizes = [holder.used_bytes for holder in holders]
    total = whole_of(now.get("memory_used_bytes"))
    known = None if None in sizes else sum(size or 0 for size in sizes)
    other = None if known is None or total is None else max(0, total - known)
    return Card(key_of(device), now, holders, other, None)


def _holder(told: dict[str, Any], device: dict[str, Any], player: Player) -> Holder:
    identity = dict_of(player.tape.bundle.get("identity"))
    pid, kernel_id = whole_of(told.get("pid")), told.get("kernel_id")
    ours = pid == identity.get("pid") or (
        kernel_id is not None and kernel_id == identity.get("kernel_id")
    )
    size = whole_of(told.get("used_bytes"))
    if ours and (then := _at(device, "own_bytes", player)) is not None:
        size = round(then)
    name = text_of(told.get("notebook_path")) or text_of(told.get("name"))
    return Holder(pid, size, name, player.witness if ours else None)


def _at(device: dict[str, Any], name: str, player: Player) -> float | None:
    """The value at the moment that is played; None where no row tells it."""
    rows = [value for when, value in sorted(column(device, name)) if when <= player.position]
    return rows[-1] if rows else None


def _typed(device: dict[str, Any]) -> dict[str, Any]:
    numbers = {
        name: number_of(value)
        for name, value in device.items()
        if name.endswith(("_bytes", "_fraction", "_celsius", "_watts", "_index"))
    }
    texts = {name: text_of(device.get(name)) for name in ("gpu_uuid", "name", "bus_id")}
    return device | numbers | texts
