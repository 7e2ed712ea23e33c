"""The GPUs of a bundle: processes and their memory, temperature, and whether the driver could still reach the card.

``server.gpus`` is a list with one dictionary per GPU. It has the fields of :mod:`~..collectors.gpu` and, where known:

==========================  ============================================================================================
``bus_id``                  PCI address, ``0000:41:00.0``, in the form of the driver's Xid lines
``slowdown_celsius``        temperature at which the card lowers its clocks; ``shutdown_celsius``: at which it shuts down
``mig_index``               number of the MIG instance; the card itself is in the list too
``lost``                    true if the driver reported, at or after the death, that the card is gone from the bus
``processes``               last reading before the death, ``[{"pid", "used_bytes", "kernel_id", "notebook_path", "name"}]``:
                            processes that held memory, and the kernel they belong to; null if processes are not visible
``processes_time``          Unix seconds of that reading
``processes_reason``        why `processes` is null, as a sentence
``columns``, ``rows``       samples before the death, as in ``server``: ``time``, ``own_bytes`` (held by this kernel and its
                            children), ``memory_used_bytes``, ``temperature_celsius``
``growth``                  whether memory growth was active when the kernel began to use the card: ``{"works",
                            "own_bytes", "total_bytes", "used_bytes"}``; null when that was not determined
``events``                  the driver's events near the death, ``[{"time", "xid"}]``
==========================  ============================================================================================

Unknown values are null or left out, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..bus_id import same_card
from ..decode import decode, dict_of, list_of, number_of, text_of, whole_of
from ..record.timeline import column

_NEAR_SECONDS = 60.0


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory on a GPU; unknown is None."""

    pid: int | None
    used_bytes: int | None
    kernel_id: str | None
    notebook_path: str | None
    name: str | None

    def is_of(self, pid: int, kernel_id: object) -> bool:
        """True if it is this process, or belongs to this kernel."""
        return self.pid == pid or (self.kernel_id is not None and self.kernel_id == kernel_id)

    @property
    def title(self) -> str:
        """``train_b.ipynb (process 4811)``."""
        pid = f"process {self.pid}" if self.pid is not None else "a process"
        whose = self.notebook_path or self.name
        return f"{whose} ({pid})" if whose else pid


@dataclass(frozen=True)
class Gpu:
    """One GPU or MIG instance. `table` has its samples, `faults` are (Unix seconds, Xid), other fields are as in the bundle."""

    index: int | None
    mig_index: int | None
    name: str | None
    bus_id: str | None
    memory_total_bytes: float | None
    slowdown_celsius: float | None
    shutdown_celsius: float | None
    lost: bool
    processes: tuple[GpuProcess, ...] | None
    processes_reason: str | None
    faults: tuple[tuple[float, int], ...]
    growth: dict[str, Any]
    table: dict[str, Any]

    @property
    def title(self) -> str:
        """``GPU 0 (NVIDIA H100)``, ``GPU 0 MIG 2 (NVIDIA A100 MIG 1g.5gb)``."""
        return self.short_title + (f" ({self.name})" if self.name else "")

    @property
    def short_title(self) -> str:
        """``GPU 0``, ``GPU 0 MIG 2``."""
        number = "" if self.index is None else f" {self.index}"
        return f"GPU{number}" + ("" if self.mig_index is None else f" MIG {self.mig_index}")

    @property
    def xids(self) -> tuple[int, ...]:
        """Xid numbers of the faults that the driver reported as events."""
        return tuple(number for _, number in self.faults)

    def series(self, name: str) -> list[tuple[float, float]]:
        """(Unix seconds, value) of a column, oldest first."""
        return sorted(column(self.table, name))

    def holds(self, pid: int, kernel_id: object = None) -> bool | None:
        """True if this process, or a child of this kernel, held memory here; None if processes are not visible."""
        if self.processes is None:
            return None
        return any(process.is_of(pid, kernel_id) for process in self.processes)

    def is_at(self, place: str) -> bool:
        """True if this is the address of this card; leading zeros do not matter."""
        return same_card(self.bus_id, place)


def gpus_of(value: object, died: float) -> list[Gpu]:
    """The GPUs in a bundle; values of the wrong type count as unknown."""
    return [_gpu(device, died) for device in list_of(value) if isinstance(device, dict)]


def _gpu(device: dict[str, Any], died: float) -> Gpu:
    read_time = number_of(device.get("processes_time"))
    fresh = read_time is None or abs(died - read_time) < _NEAR_SECONDS
    found = device.get("processes")
    listed = (decode(GpuProcess, one) for one in list_of(found))
    return Gpu(
        whole_of(device.get("nvml_index")),
        whole_of(device.get("mig_index")),
        text_of(device.get("name")),
        text_of(device.get("bus_id")),
        number_of(device.get("memory_total_bytes")),
        number_of(device.get("slowdown_celsius")),
        number_of(device.get("shutdown_celsius")),
        device.get("lost") is True,
        tuple(filter(None, listed)) if fresh and isinstance(found, (list, tuple)) else None,
        text_of(device.get("processes_reason")),
        tuple(_faults(device.get("events"), died)),
        dict_of(device.get("growth")),
        device,
    )


def _faults(events: object, died: float) -> list[tuple[float, int]]:
    found = []
    for event in list_of(events):
        when, number = number_of(dict_of(event).get("time")), whole_of(dict_of(event).get("xid"))
        if when is not None and number is not None and abs(when - died) < _NEAR_SECONDS:
            found.append((when, number))
    return found
