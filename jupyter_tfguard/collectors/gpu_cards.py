"""Each card and MIG instance as a dictionary: identity, memory, temperature, health, and the processes that use it.

The module ``pynvml`` is an argument: only ``gpu.py`` imports it. No call here opens a CUDA context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Source: nvml.h, nvmlReturn_t. GPU_IS_LOST: fallen off the bus.
GPU_IS_LOST = 15
# The driver is gone: not initialised, not loaded, or its version differs from its library.
DRIVER_GONE = frozenset({1, 9, 18})
# Slowly changing values are read every so many ticks.
RARE_TICKS = 10
DIVIDED = "This card is divided into MIG instances, and each instance lists its own processes."
_NOT_LISTED = {
    3: "The driver does not list the processes on this card.",  # NOT_SUPPORTED
    4: "The driver does not let this user see the processes on this card.",  # NO_PERMISSION
}
# Source: nvml.h, NVML_FI_DEV_...
_COUNTERS = {
    "ecc_uncorrected_count": 4,  # ECC_DBE_VOL_TOTAL
    "retired_pages_pending": 31,  # RETIRED_PENDING
    "remapped_rows_uncorrected_count": 143,  # REMAPPED_UNC
    "remapped_rows_pending": 144,  # REMAPPED_PENDING
    "remapped_rows_failed": 145,  # REMAPPED_FAILURE
}
_FLAGS = ("retired_pages_pending", "remapped_rows_pending", "remapped_rows_failed")
# Source: nvml.h, nvmlValueType_t: the member of the union that holds a value, by its type.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
# Source: nvml.h, nvmlClocksEventReason..., by bit.
_REASONS = (
    "GpuIdle",
    "ApplicationsClocksSetting",
    "SwPowerCap",
    "HwSlowdown",
    "SyncBoost",
    "SwThermalSlowdown",
    "HwThermalSlowdown",
    "HwPowerBrakeSlowdown",
    "DisplayClockSetting",
)
IDENTITY = ("nvml_index", "mig_index", "gpu_uuid", "name", "bus_id")
KEYS = (
    *(*IDENTITY, "mig_enabled", "memory_total_bytes", "memory_used_bytes", "memory_free_bytes"),
    *("utilization_fraction", "temperature_celsius", "slowdown_celsius", "shutdown_celsius"),
    *("power_watts", "power_limit_watts", "throttle_reasons", *_COUNTERS),
    *("lost", "processes", "processes_reason"),
)
Device = dict[str, Any]


class Cards:
    """All cards of the machine in the driver's order. A card that cannot be read does not affect the others.

    Args:
        nvml: The module ``pynvml``, initialised.

    Raises:
        pynvml.NVMLError: The number of cards cannot be read.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._count: int = nvml.nvmlDeviceGetCount()
        self._tick = 0
        # Handle and rarely changing keys of each card, followed by those of its instances.
        self._known: dict[int, list[tuple[Any, Device]]] = {}

    def __len__(self) -> int:
        return self._count

    def read(self) -> list[Device]:
        """All :data:`KEYS` of each card, followed by its MIG instances; None = unknown.

        Raises:
            pynvml.NVMLError: The driver is gone.
        """
        rare = self._tick % RARE_TICKS == 0
        self._tick += 1
        return [device for index in range(self._count) for device in self._card(index, rare)]

    def _card(self, index: int, rare: bool) -> list[Device]:
        try:
            if rare or index not in self._known:
                self._known[index] = self._units(index)
            return [known | self._now(handle, known) for handle, known in self._known[index]]
        except self._nvml.NVMLError as bad:
            if bad.value in DRIVER_GONE:
                raise
            parts = self._known.get(index, [(None, {"nvml_index": index})])
            if bad.value == GPU_IS_LOST:
                return [_gone(known) for _, known in parts]
            why = f"The driver denies access to this card (NVML error {bad.value})."
            return [_unknown() | {"nvml_index": index, "lost": False, "processes_reason": why}]

    def identity(self, index: int | None) -> dict[str, Any]:
        """``bus_id``, ``nvml_index`` and ``gpu_uuid`` of a card; None = unknown."""
        known = self._known[index][0][1] if index in self._known else {}
        return {
            "bus_id": known.get("bus_id"),
            "nvml_index": index,
            "gpu_uuid": known.get("gpu_uuid"),
        }

    def _units(self, index: int) -> list[tuple[Any, Device]]:
        """A card and its instances, each with its handle."""
        nvml = self._nvml
        card = nvml.nvmlDeviceGetHandleByIndex(index)
        known = self._rare(card) | {"nvml_index": index}
        pci = ask(nvml, nvml.nvmlDeviceGetPciInfo, card)
        if pci is not None:
            known["bus_id"] = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"
        mode = ask(nvml, nvml.nvmlDeviceGetMigMode, card)
        known["mig_enabled"] = None if mode is None else mode[0] == 1
        found = [(card, known)]
        if known["mig_enabled"]:
            for number in range(ask(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, card) or 0):
                part = ask(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, card, number)
                if part is not None:
                    place = {"nvml_index": index, "mig_index": number, "bus_id": known["bus_id"]}
                    found.append((part, self._rare(part) | place))
        return found

    def _rare(self, handle: Any) -> Device:
        """Slowly changing values."""
        nvml = self._nvml
        limit = ask(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        threshold = nvml.nvmlDeviceGetTemperatureThreshold
        found = _unknown() | {
            "gpu_uuid": ask(nvml, nvml.nvmlDeviceGetUUID, handle),
            "name": ask(nvml, nvml.nvmlDeviceGetName, handle),
            "slowdown_celsius": ask(
                nvml, threshold, handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            ),
            "shutdown_celsius": ask(
                nvml, threshold, handle, nvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN
            ),
            "power_limit_watts": None if limit is None else limit / 1000,
            "lost": False,
        }
        fields = ask(nvml, nvml.nvmlDeviceGetFieldValues, handle, tuple(_COUNTERS.values())) or ()
        values = {
            row.fieldId: int(getattr(row.value, _MEMBERS[row.valueType]))
            for row in fields
            if row.nvmlReturn == 0 and row.valueType < len(_MEMBERS)
        }
        counts: dict[str, Any] = {name: values.get(field) for name, field in _COUNTERS.items()}
        flags = {name: None if counts[name] is None else bool(counts[name]) for name in _FLAGS}
        return found | counts | flags

    def _now(self, handle: Any, known: Device) -> Device:
        """Values that change with each tick."""
        nvml = self._nvml
        # Version 2 of the structure, driver 510 and later. In some drivers `used` includes the reserved memory.
        memory = ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
        load = ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
        power = ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
        mask = ask(nvml, nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        found = {
            "utilization_fraction": None if load is None else load.gpu / 100,
            "temperature_celsius": ask(
                nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU
            ),
            "power_watts": None if power is None else power / 1000,
            "throttle_reasons": None
            if mask is None
            else [name for bit, name in enumerate(_REASONS) if mask >> bit & 1],
        }
        if memory is not None:
            found["memory_total_bytes"] = memory.total
            found["memory_used_bytes"] = memory.total - memory.free - memory.reserved
            found["memory_free_bytes"] = memory.free
        processes, reason = (None, DIVIDED) if known["mig_enabled"] else self._processes(handle)
        return found | {"processes": processes, "processes_reason": reason}

    def _processes(self, handle: Any) -> tuple[list[dict[str, Any]] | None, str | None]:
        """Pid, bytes (None = unknown) and name of each process; or None and the reason as a sentence.

        The driver's pids may not be valid inside a container.
        """
        nvml = self._nvml
        try:
            found = nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
        except nvml.NVMLError as bad:
            if bad.value == GPU_IS_LOST or bad.value in DRIVER_GONE:
                raise
            other = f"The driver did not list the processes on this card (NVML error {bad.value})."
            return None, _NOT_LISTED.get(bad.value, other)
        rows = [
            {"pid": p.pid, "used_bytes": p.usedGpuMemory, "name": self._name(p.pid)} for p in found
        ]
        return rows, None

    def _name(self, pid: int) -> str | None:
        """File name of the program without its folder."""
        nvml = self._nvml
        # Sample: "/opt/conda/bin/python3.11"; some drivers append the arguments, which may contain secrets.
        words = (ask(nvml, nvml.nvmlSystemGetProcessName, pid) or "").split()
        return (words[0].rsplit("/", 1)[-1] or None) if words else None


def ask(nvml: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an NVML call; None if this card, driver or user does not support or permit it.

    Raises:
        pynvml.NVMLError: The card has fallen off the bus, or the driver is gone.
    """
    try:
        return call(*arguments)
    except nvml.NVMLError as bad:
        if bad.value == GPU_IS_LOST or bad.value in DRIVER_GONE:
            raise
        return None
    except UnicodeDecodeError:
        return None


def _unknown() -> Device:
    return dict.fromkeys(KEYS)


def _gone(known: Device) -> Device:
    """A card that has fallen off the bus: only its identity is known."""
    return _unknown() | {key: known.get(key) for key in IDENTITY} | {"lost": True}
