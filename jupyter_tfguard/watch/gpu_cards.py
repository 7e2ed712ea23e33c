"""What the driver tells of the GPUs, joined with the kernels that are watched: who holds what.

Unknown stays unknown: where processes cannot be told, a card has no list of holders, and says why.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..units import human_bytes
from .gpu_processes import ProcessCheck, Seen
from .witness import Witness

OTHER_NUMBERS = "Processes cannot be told here: the driver numbers them as the machine outside this container does."
NOT_READABLE = "Processes cannot be told here: those of the kernels may not be looked at."
NO_SIZES = "The driver does not tell here how much each process holds."
# The driver keeps some hundred MiB of a card for itself, also where no process uses it.
_DRIVER_BYTES = 1 << 30
_KIN_SECONDS = 10.0


@dataclass(frozen=True)
class Holder:
    """A process that holds memory of a GPU; unknown is None.

    Attributes:
        name: Of the program.
        witness: The kernel that it is, or belongs to; None for a process outside.
    """

    pid: int | None
    used_bytes: int | None
    name: str | None
    witness: Witness | None


@dataclass(frozen=True)
class Card:
    """One GPU, or one MIG instance, at one moment.

    Attributes:
        key: Tells it from the others.
        device: As :mod:`~..collectors.gpu` tells it.
        holders: None where processes cannot be told.
        other_bytes: In use and of no process that was seen; None = unknown.
        note: What people should know of the list; None for nothing.
    """

    key: str
    device: Mapping[str, Any]
    holders: tuple[Holder, ...] | None
    other_bytes: int | None
    note: str | None

    def own_bytes(self, witness: Witness) -> int | None:
        """What a kernel and its children hold here; None = unknown."""
        if self.holders is None:
            return None
        sizes = [holder.used_bytes for holder in self.holders if holder.witness is witness]
        return None if None in sizes else sum(size or 0 for size in sizes)


def notebook_path(witness: Witness) -> str | None:
    """From the server's sessions, else what the kernel says."""
    if witness.kernel.notebook_path is not None:
        return witness.kernel.notebook_path
    claimed = (witness.live.header or {}).get("notebook_path")
    return claimed[:1000] if isinstance(claimed, str) and claimed else None


def key_of(device: Mapping[str, Any]) -> str:
    """What tells a device from the others: its own id, else its place in the driver's list."""
    uuid = device.get("gpu_uuid")
    return uuid if isinstance(uuid, str) and uuid else str(device.get("nvml_index"))


class Joiner:
    """Joins what the driver tells with the kernels. For one thread.

    Args:
        check: Whether a process is the one that the driver means.
    """

    def __init__(self, check: ProcessCheck) -> None:
        self._check = check
        self._told: set[int] = set()
        # Of processes that the looks at children have not seen: an idle kernel's are looked at rarely.
        self._kin: dict[int, tuple[float, Witness | None]] = {}

    def join(
        self, devices: Sequence[Mapping[str, Any]], witnesses: Sequence[Witness]
    ) -> tuple[Card, ...]:
        """The cards of this moment."""
        owners: dict[int, Witness] = {}
        for witness in witnesses:
            for child in witness.children:
                owners.setdefault(child, witness)
        # A kernel that another one started is itself.
        owners.update((witness.identity.pid, witness) for witness in witnesses)
        listed = {pid for device in devices for pid in _pids(device)}
        self._add_kin(listed, owners)
        seen = {pid: self._check.look(pid) for pid in listed}
        problem = self._problem(seen, owners)
        just_ended = {pid for pid, what in seen.items() if what is Seen.GONE} & self._told
        self._told = set() if problem else listed - just_ended
        return tuple(_card(device, owners, problem, just_ended) for device in devices)

    def _add_kin(self, listed: set[int], owners: dict[int, Witness]) -> None:
        """Find the kernel that a process descends from, a first time and again once in a while."""
        now, strangers = time.monotonic(), listed - owners.keys()
        kin: dict[int, tuple[float, Witness | None]] = {}
        for pid in strangers:
            found = self._kin.get(pid)
            if found is None or now - found[0] > _KIN_SECONDS:
                parents = (owners.get(parent) for parent in self._check.ancestors(pid))
                found = now, next((witness for witness in parents if witness is not None), None)
            kin[pid] = found
        self._kin = kin
        owners.update((pid, witness) for pid, (_, witness) in kin.items() if witness is not None)

    def _problem(self, seen: Mapping[int, Seen], owners: Mapping[int, Witness]) -> str | None:
        """Why the ids cannot be believed; None when they can."""
        ours = [what for pid, what in seen.items() if pid in owners]
        if any(what in (Seen.OTHER, Seen.DRIVER) for what in ours):
            return OTHER_NUMBERS
        if Seen.CUDA in ours:
            return None
        if Seen.UNREADABLE in ours:
            return NOT_READABLE
        others = {pid: what for pid, what in seen.items() if pid not in owners}
        missing = {pid for pid, what in others.items() if what is Seen.GONE} - self._told
        if missing or Seen.OTHER in others.values():
            return OTHER_NUMBERS
        return None


def _pids(device: Mapping[str, Any]) -> list[int]:
    processes = device.get("processes")
    found = (p.get("pid") for p in processes) if isinstance(processes, list) else ()
    return [pid for pid in found if isinstance(pid, int)]


def _card(
    device: Mapping[str, Any],
    owners: Mapping[int, Witness],
    problem: str | None,
    just_ended: set[int],
) -> Card:
    key, processes, used = key_of(device), device.get("processes"), device.get("memory_used_bytes")
    if not isinstance(processes, list):
        return Card(key, device, None, None, device.get("processes_reason"))
    if not processes:
        if used is not None and used > _DRIVER_BYTES:
            note = f"The driver lists no process here, and {human_bytes(used)} are in use: inside a container it may hide them."
            return Card(key, device, None, None, note)
        return Card(key, device, (), used, None)
    if problem is not None:
        return Card(key, device, None, None, problem)
    holders = [
        Holder(p.get("pid"), p.get("used_bytes"), p.get("name"), owners.get(p.get("pid", -1)))
        for p in processes
        if p.get("pid") not in just_ended
    ]
    holders.sort(key=lambda holder: -(holder.used_bytes or 0))
    sizes = [holder.used_bytes for holder in holders]
    if None in sizes:
        return Card(key, device, tuple(holders), None, NO_SIZES)
    left = None if used is None else max(0, used - sum(size or 0 for size in sizes))
    return Card(key, device, tuple(holders), left, None)


def is_about(event: Mapping[str, Any], card: Card, cards: Sequence[Card]) -> bool:
    """True for a fault of this card; each instance of a divided card has part in it.

    Of a card that fell off the bus some drivers tell an event without its name: it is the one that is lost, or the only one.
    """
    names = ("gpu_uuid", "bus_id", "nvml_index")
    if all(event.get(name) is None for name in names):
        whole = [c for c in cards if c.device.get("mig_index") is None]
        lost = [c for c in whole if c.device.get("lost") is True]
        meant = lost if len(lost) == 1 else whole
        return len(meant) == 1 and meant[0].device.get("nvml_index") == card.device.get(
            "nvml_index"
        )
    return any(
        event.get(name) is not None and event.get(name) == card.device.get(name) for name in names
    )
