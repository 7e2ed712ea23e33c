"""All cards of the machine, read once a tick: one that is lost or refused does not keep the others from being read."""

from __future__ import annotations

import time
from typing import Any

from .gpu_calls import DRIVER_GONE, GPU_IS_LOST, attempt, text
from .gpu_devices import Device
from .gpu_processes import Names

# What seldom changes is read every so many ticks, of each card in another one.
RARE_TICKS = 10
# Well below the silence after which the reader is given up.
BUDGET_SECONDS = 0.4


class Cards:
    """The cards, in the driver's order.

    Args:
        budget_seconds: What a look at all cards may take once each is known. A driver that is slower than that has the
            rest of its cards told as they were, and read the next time.

    Raises:
        nvml.NVMLError: The driver does not say how many.
    """

    def __init__(self, nvml: Any, budget_seconds: float = BUDGET_SECONDS) -> None:
        self._names = Names(nvml)
        self._cards = [_Card(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        self._told: dict[int, list[dict[str, Any]]] = {}
        self._budget_seconds = budget_seconds
        self._next = 0

    def __len__(self) -> int:
        return len(self._cards)

    def read(self) -> list[dict[str, Any]]:
        """Each card, followed by its MIG instances.

        Raises:
            nvml.NVMLError: The driver is gone.
        """
        end = time.monotonic() + self._budget_seconds
        count = len(self._cards)
        for number in (*range(self._next, count), *range(self._next)):
            if number in self._told and time.monotonic() > end:
                self._next = number
                break
            self._told[number] = self._cards[number].read(self._names)
        else:
            self._names.forget_ended()
        return [device for number in range(count) for device in self._told[number]]

    def identity(self, index: int | None) -> dict[str, Any]:
        """``bus_id``, ``nvml_index`` and ``gpu_uuid`` of a card; None where it is not known."""
        is_ours = index is not None and 0 <= index < len(self._cards)
        device = self._cards[index or 0].device if is_ours else None
        return {
            "bus_id": None if device is None else device.bus_id,
            "nvml_index": index,
            "gpu_uuid": None if device is None else device.gpu_uuid,
        }


class _Card:
    """One card with its instances; opened when it is first read, and again from time to time while it is away."""

    def __init__(self, nvml: Any, index: int) -> None:
        self._nvml = nvml
        self._index = index
        self._away: int | None = None  # NVML's error
        self._opened = False
        self._looks = index  # not all cards at the same tick
        self._parts: list[Device] = []
        self.device = Device(nvml, index, None, None)

    def read(self, names: Names) -> list[dict[str, Any]]:
        rare = self._looks % RARE_TICKS == 0
        self._looks += 1
        if not self._opened and (rare or self._away is None):
            self._open()
        if self._away is None:
            try:
                return self._read(names, rare)
            except self._nvml.NVMLError as bad:
                if bad.value in DRIVER_GONE:
                    raise
                self._opened, self._away = False, bad.value
        if self._away == GPU_IS_LOST:
            return [device.gone() for device in (self.device, *self._parts)]
        return [self.device.no_access(self._away)]

    def _open(self) -> None:
        handle, error = attempt(self._nvml, "nvmlDeviceGetHandleByIndex", self._index)
        self._opened, self._away = error == 0, error or None
        if self._opened:
            self.device.take_handle(self._nvml, handle)

    def _read(self, names: Names, rare: bool) -> list[dict[str, Any]]:
        fresh = self.device.is_fresh
        found = [self.device.read(names, rare)]
        if rare or fresh:
            self._parts = self._find_parts()
        return found + [part.read(names, rare) for part in self._parts]

    def _find_parts(self) -> list[Device]:
        """The instances; one that is still there goes on with what is known of it."""
        old = {(p.mig_index, p.gpu_uuid): p for p in self._parts if p.gpu_uuid is not None}
        found = []
        for number, handle in self.device.instances():
            told, _ = attempt(self._nvml, "nvmlDeviceGetUUID", handle)
            new = Device(self._nvml, self._index, handle, number, self.device.bus_id)
            found.append(old.get((number, text(told) or ""), new))
        return found
