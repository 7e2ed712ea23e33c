"""Joins the driver's list of GPU processes with the tracked kernels: GPU memory per kernel.

Unknown stays unknown: if processes cannot be matched, a card has no list of holders and a note with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...bus_id import same_card
from ...decode import text_of
from ...units import human_bytes
from ..monitored import MonitoredKernel
from .gpu_processes import ProcessCheck, Seen

OTHER_NUMBERS = "Processes cannot be identified here: the driver uses the process ids of the machine, not those of this container."
NOT_READABLE = (
    "Processes cannot be identified here: reading the kernels' processes is not permitted."
)
NO_SIZES = "The driver does not report memory per process here."
# The driver reserves some hundred MiB of a card, even if no process uses it.
_DRIVER_BYTES = 1 << 30


@dataclass(frozen=True)
class GpuHolder:
    """A process that holds memory of a GPU; unknown is None.

    Attributes:
        name: Name of the program.
        monitored: The kernel that the process is or descends from; None for other processes.
    """

    pid: int | None
    used_bytes: int | None
    name: str | None
    monitored: MonitoredKernel | None


@dataclass(frozen=True)
class Card:
    """One GPU, or one MIG instance, at one moment.

    Attributes:
        device: As printed by :mod:`~..collectors.gpu`.
        holders: None if processes cannot be matched.
        other_bytes: In use, but not by a listed process; None = unknown.
        note: A remark on the list for users; None if there is none.
    """

    device: Mapping[str, Any]
    holders: tuple[GpuHolder, ...] | None = None
    other_bytes: int | None = None
    note: str | None = None

    @property
    def key(self) -> str:
        """The device's UUID, else its index in the driver's list."""
        uuid = self.device.get("gpu_uuid")
        return uuid if isinstance(uuid, str) and uuid else str(self.device.get("nvml_index"))

    @property
    def is_divided(self) -> bool:
        """True for a card whose memory is divided into instances, which follow it in the list."""
        return self.device.get("mig_enabled") is True

    def own_bytes(self, monitored: MonitoredKernel) -> int | None:
        """Bytes that a kernel and its children hold here; None = unknown."""
        if self.holders is None:
            return None
        sizes = [holder.used_bytes for holder in self.holders if holder.monitored is monitored]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def tensorflow(self, monitored: MonitoredKernel) -> Mapping[str, Any] | None:
        """What TensorFlow in a kernel reports about this card; None if nothing, or if several instances match."""
        bus_id = self.device.get("bus_id")
        found = [one for one in monitored.live.gpu_memory if same_card(one.get("bus_id"), bus_id)]
        return found[0] if len(found) == 1 else None


def notebook_path(monitored: MonitoredKernel) -> str | None:
    """From the server's sessions, else from the kernel's header."""
    if monitored.kernel.notebook_path is not None:
        return monitored.kernel.notebook_path
    return text_of((monitored.live.header or {}).get("notebook_path"), 1000)


class Joiner:
    """Joins the driver's list with the kernels. Not thread-safe.

    Args:
        check: Checks whether a process id is the process that the driver means.
    """

    def __init__(self, check: ProcessCheck) -> None:
        self._check = check
        self._trusted: set[int] = set()  # of the last list

    def join(
        self, devices: Sequence[Mapping[str, Any]], monitored_kernels: Sequence[MonitoredKernel]
    ) -> tuple[Card, ...]:
        """The cards with their holders."""
        listed = {process["pid"] for device in devices for process in device["processes"] or ()}
        owners = self._owners(listed, monitored_kernels)
        seen = {pid: self._check.poll(pid) for pid in listed}
        problem = self._problem(seen, owners)
        just_ended = {pid for pid, what in seen.items() if what is Seen.GONE} & self._trusted
        self._trusted = set() if problem else listed - just_ended
        return tuple(_card(device, owners, problem, just_ended) for device in devices)

    def _owners(
        self, listed: set[int], monitored_kernels: Sequence[MonitoredKernel]
    ) -> dict[int, MonitoredKernel]:
        """Per process: the nearest kernel that it is or descends from."""
        kernels = {monitored.identity.pid: monitored for monitored in monitored_kernels}
        owners = {
            child: monitored for monitored in monitored_kernels for child in monitored.children
        } | kernels
        for pid in listed - owners.keys():
            for parent in self._check.ancestors(pid):
                if parent in owners:
                    owners[pid] = owners[parent]
                    break
        return owners

    def _problem(
        self, seen: Mapping[int, Seen], owners: Mapping[int, MonitoredKernel]
    ) -> str | None:
        """Why the process ids cannot be trusted; None if they can."""
        ours = [what for pid, what in seen.items() if pid in owners]
        if Seen.OTHER in ours:
            return OTHER_NUMBERS
        if Seen.GPU_USER in ours:
            return None
        if Seen.UNREADABLE in ours:
            return NOT_READABLE
        missing = {pid for pid, what in seen.items() if what is Seen.GONE} - self._trusted
        return OTHER_NUMBERS if missing or Seen.OTHER in seen.values() else None


def _card(
    device: Mapping[str, Any],
    owners: Mapping[int, MonitoredKernel],
    problem: str | None,
    just_ended: set[int],
) -> Card:
    processes, used = device["processes"], device["memory_used_bytes"]
    if processes is None:
        return Card(device, note=device["processes_reason"])
    if not processes:
        if used is not None and used > _DRIVER_BYTES:
            note = f"The driver lists no process here, but {human_bytes(used)} are in use: inside a container it may hide them."
            return Card(device, note=note)
        return Card(device, (), used)
    if problem is not None:
        return Card(device, note=problem)
    holders = [
        GpuHolder(p["pid"], p["used_bytes"], p["name"], owners.get(p["pid"]))
        for p in processes
        if p["pid"] not in just_ended
    ]
    holders.sort(key=lambda holder: -(holder.used_bytes or 0))
    sizes = [holder.used_bytes for holder in holders]
    if None in sizes:
        return Card(device, tuple(holders), note=NO_SIZES)
    left = None if used is None else max(0, used - sum(size or 0 for size in sizes))
    return Card(device, tuple(holders), left)


def is_about(event: Mapping[str, Any], card: Card, cards: Sequence[Card]) -> bool:
    """True for a fault of this card, or of the card that this instance is part of.

    A card that fell off the bus may report an event without its index: then the lost card is meant, or the only card.
    """
    index = event.get("nvml_index")
    if index is None:
        whole = [c for c in cards if c.device.get("mig_index") is None]
        lost = [c for c in whole if c.device.get("lost") is True]
        meant = lost if len(lost) == 1 else whole
        index = meant[0].device.get("nvml_index") if len(meant) == 1 else None
    return index is not None and index == card.device.get("nvml_index")
