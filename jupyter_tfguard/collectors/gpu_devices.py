"""Each card and MIG instance as one dictionary: what it is, how full, how warm, how fast, how well, and who is on it."""

from __future__ import annotations

from typing import Any

from .gpu_calls import Asker, text
from .gpu_counters import NAMES as COUNTERS
from .gpu_counters import counters
from .gpu_processes import DIVIDED, Names, processes

_IDENTITY = ("gpu_uuid", "name", "bus_id")
_STATIC = (*_IDENTITY, "slowdown_celsius", "shutdown_celsius", "sm_clock_max_hertz")
_MEMORY = ("total", "used", "free", "reserved")
KEYS = (
    *("nvml_index", "mig_index", *_IDENTITY, "mig_enabled"),
    *(f"memory_{name}_bytes" for name in _MEMORY),
    *("utilization_fraction", "temperature_celsius", "slowdown_celsius", "shutdown_celsius"),
    *("power_watts", "power_limit_watts", "sm_clock_hertz", "sm_clock_max_hertz"),
    *("throttle_reasons", *COUNTERS, "lost", "processes", "processes_reason"),
)
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
# Source: nvml.h: NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, ..._SLOWDOWN; NVML_TEMPERATURE_GPU; NVML_CLOCK_SM; nvmlMemory_v2
_SHUTDOWN, _SLOWDOWN, _CHIP, _SM, _MEMORY_V2 = 0, 1, 0, 1, 0x02000028
_TEMPERATURE = (("nvmlDeviceGetTemperature", _CHIP), ("nvmlDeviceGetTemperatureV", _CHIP))
_LIMITED = (
    ("nvmlDeviceGetCurrentClocksEventReasons",),
    ("nvmlDeviceGetCurrentClocksThrottleReasons",),
)


class Device:
    """One card, or one instance of a card.

    Args:
        handle: NVML's; None where it was not given: everything is unknown then.
        mig_index: Number of the instance; None for a whole card.
        bus_id: Of the card that an instance is a part of.
    """

    def __init__(
        self, nvml: Any, index: int, handle: Any, mig_index: int | None, bus_id: str | None = None
    ) -> None:
        self._asker = None if handle is None else Asker(nvml, handle)
        self._was_read = False
        self.mig_index = mig_index
        self._known: dict[str, Any] = dict.fromkeys(KEYS)
        self._known |= {"nvml_index": index, "mig_index": mig_index, "bus_id": bus_id}
        self._known["lost"] = False

    @property
    def is_fresh(self) -> bool:
        """Whether it has not been read since it has its handle."""
        return not self._was_read

    @property
    def is_divided(self) -> bool:
        """Whether the card is in MIG mode, as seen last."""
        return self._known["mig_enabled"] is True

    @property
    def bus_id(self) -> str | None:
        """``0000:41:00.0``, in small letters as the driver's own lines have it."""
        return self._known["bus_id"]  # type: ignore[no-any-return]

    @property
    def gpu_uuid(self) -> str | None:
        """As the driver names it for good."""
        return self._known["gpu_uuid"]  # type: ignore[no-any-return]

    def gone(self) -> dict[str, Any]:
        """The card is not on the bus: what it is remains, how it is is unknown."""
        kept = ("nvml_index", "mig_index", *_IDENTITY)
        self._known = dict.fromkeys(KEYS) | {key: self._known[key] for key in kept}
        return self._known | {"lost": True}

    def take_handle(self, nvml: Any, handle: Any) -> None:
        """Go on with a handle: the card is there, or there again."""
        self._asker = Asker(nvml, handle)
        self._known["lost"] = False
        self._was_read = False

    def no_access(self, error: int) -> dict[str, Any]:
        """The driver gives no handle."""
        why = f"The driver gives no access to this card (NVML error {error})."
        return self._known | {"processes_reason": why}

    def read(self, names: Names, rare: bool) -> dict[str, Any]:
        """All of :data:`KEYS`; None for what is not told.

        Args:
            rare: Also read what seldom changes; the first time it is read anyway.

        Raises:
            nvml.NVMLError: The card is gone from the bus, or the driver is.
        """
        asker = self._asker
        assert asker is not None
        if rare or not self._was_read:
            self._read_rare(asker)
            self._was_read = True
        found = self._known | _memory(asker)
        load = asker.ask("nvmlDeviceGetUtilizationRates")
        power = asker.ask("nvmlDeviceGetPowerUsage")
        clock = asker.ask("nvmlDeviceGetClockInfo", _SM)
        mask = asker.first(*_LIMITED)
        found |= {
            "utilization_fraction": None if load is None else load.gpu / 100,
            "temperature_celsius": asker.first(*_TEMPERATURE),
            "power_watts": None if power is None else power / 1000,
            "sm_clock_hertz": None if clock is None else clock * 1_000_000,
            "throttle_reasons": None if mask is None else _reasons(mask),
        }
        if self.is_divided:
            found["processes_reason"] = DIVIDED
        else:
            rows, why = processes(asker, names, found["memory_total_bytes"])
            found |= {"processes": rows, "processes_reason": why}
        return found

    def _read_rare(self, asker: Asker) -> None:
        known = self._known
        for key in _STATIC:
            if known[key] is None:
                known[key] = _static(asker, key)
        limit = asker.ask("nvmlDeviceGetEnforcedPowerLimit")
        known["power_limit_watts"] = None if limit is None else limit / 1000
        if self.mig_index is None:
            mode = asker.ask("nvmlDeviceGetMigMode")
            known["mig_enabled"] = None if mode is None else mode[0] == 1
        known |= counters(asker)

    def instances(self) -> list[tuple[int, Any]]:
        """Number and handle of each MIG instance there is."""
        asker = self._asker
        if asker is None or not self.is_divided:
            return []
        found = []
        for number in range(asker.ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
            handle = asker.ask("nvmlDeviceGetMigDeviceHandleByIndex", number)
            if handle is not None:
                found.append((number, handle))
        return found


def _static(asker: Asker, key: str) -> Any:
    if key == "gpu_uuid":
        return text(asker.ask("nvmlDeviceGetUUID"))
    if key == "name":
        return text(asker.ask("nvmlDeviceGetName"))
    if key == "bus_id":
        pci = asker.ask("nvmlDeviceGetPciInfo")
        return None if pci is None else f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"
    if key == "sm_clock_max_hertz":
        megahertz = asker.ask("nvmlDeviceGetMaxClockInfo", _SM)
        return None if megahertz is None else megahertz * 1_000_000
    threshold = _SLOWDOWN if key == "slowdown_celsius" else _SHUTDOWN
    return asker.ask("nvmlDeviceGetTemperatureThreshold", threshold)


def _memory(asker: Asker) -> dict[str, int | None]:
    """Bytes in use by processes without what the driver reserves; with it where `reserved` is unknown (old drivers)."""
    memory = asker.first(
        ("nvmlDeviceGetMemoryInfo", _MEMORY_V2),
        ("nvmlDeviceGetMemoryInfo",),
    )
    if memory is None:
        return {}
    reserved = getattr(memory, "reserved", None)
    used = memory.used
    # Drivers differ in whether `used` counts what is reserved; their headers say the one or the other.
    if reserved is not None and used + memory.free + reserved > memory.total:
        used = max(0, used - reserved)
    values = zip(_MEMORY, (memory.total, used, memory.free, reserved), strict=True)
    return {f"memory_{name}_bytes": value for name, value in values}


def _reasons(mask: int) -> list[str]:
    return [name for bit, name in enumerate(_REASONS) if mask >> bit & 1]
