"""Health counters of a card that change seldom: ECC, remapped rows, retired pages, PCIe replays, what the driver advises.

Each is a field of ``nvmlDeviceGetFieldValues``. Where an old driver has no such field, the function that told it then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gpu_calls import Asker

# Source: nvml.h, NVML_FI_DEV_...
_FIELDS = {
    "ecc_corrected_count": 3,  # ECC_SBE_VOL_TOTAL
    "ecc_uncorrected_count": 4,  # ECC_DBE_VOL_TOTAL
    "retired_pages_pending": 31,  # RETIRED_PENDING
    "pcie_replay_count": 94,  # PCIE_REPLAY_COUNTER
    "remapped_rows_corrected_count": 142,  # REMAPPED_COR
    "remapped_rows_uncorrected_count": 143,  # REMAPPED_UNC
    "remapped_rows_pending": 144,  # REMAPPED_PENDING
    "remapped_rows_failed": 145,  # REMAPPED_FAILURE
}
_RECOVERY_FIELD = 230  # GET_GPU_RECOVERY_ACTION
_FLAGS = ("retired_pages_pending", "remapped_rows_pending", "remapped_rows_failed")
_ROWS = tuple(name for name in _FIELDS if name.startswith("remapped_rows"))
# Source: nvml.h, nvmlGpuRecoveryAction_t
_RECOVERY = (
    "none",
    "GPU reset",
    "node reboot",
    "drain peer traffic",
    "drain and reset",
    "recover fabric domain",
    "bus reset",
    "system reboot",
)
# Source: nvml.h, nvmlValueType_t: the member of the union that holds a value, by its type.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
NAMES = (*_FIELDS, "recovery_action")


def counters(asker: Asker) -> dict[str, Any]:
    """All of :data:`NAMES`; None where it is not told.

    Raises:
        nvml.NVMLError: As :meth:`~.gpu_calls.Asker.ask`.
    """
    values = _fields(asker, tuple(_FIELDS.values()))
    found: dict[str, Any] = {name: values.get(field) for name, field in _FIELDS.items()}
    for name, ask in _OLD.items():
        if found[name] is None:
            found[name] = ask(asker)
    if all(found[name] is None for name in _ROWS):
        found |= zip(_ROWS, asker.ask("nvmlDeviceGetRemappedRows") or (None,) * 4, strict=True)
    for name in _FLAGS:
        found[name] = None if found[name] is None else bool(found[name])
    # By itself: a driver that does not know this newest number may refuse the whole list.
    action = _fields(asker, (_RECOVERY_FIELD,)).get(_RECOVERY_FIELD)
    return found | {"recovery_action": None if action is None else _recovery(action)}


def _recovery(action: int) -> str:
    return _RECOVERY[action] if 0 <= action < len(_RECOVERY) else f"number {action}"


# nvmlMemoryErrorType_t: 0 corrected, 1 uncorrected; nvmlEccCounterType_t: 0 since boot.
_OLD: dict[str, Callable[[Asker], Any]] = {
    "ecc_corrected_count": lambda asker: asker.ask("nvmlDeviceGetTotalEccErrors", 0, 0),
    "ecc_uncorrected_count": lambda asker: asker.ask("nvmlDeviceGetTotalEccErrors", 1, 0),
    "retired_pages_pending": lambda asker: asker.ask("nvmlDeviceGetRetiredPagesPendingStatus"),
    "pcie_replay_count": lambda asker: asker.ask("nvmlDeviceGetPcieReplayCounter"),
}


def _fields(asker: Asker, numbers: tuple[int, ...]) -> dict[int, int]:
    """Value of each field that is told, by its number."""
    return {
        row.fieldId: int(getattr(row.value, _MEMBERS[row.valueType]))
        for row in asker.ask("nvmlDeviceGetFieldValues", numbers) or ()
        if row.nvmlReturn == 0 and row.valueType < len(_MEMBERS)
    }
