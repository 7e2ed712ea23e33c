"""What the stand-in for NVIDIA's management library shows: cards, who computes on them, what goes wrong.

Usage::

    folder = build(tmp_path)                       # library.py
    scenario = eight_gpus(holders={0: [(kernel_pid, 30 * GIB)]})
    scenario.save(path)                            # environ(folder, path) goes to the process that is to see it
    scenario.cards[0].memory_used = 60 * GIB       # later, while it runs
    scenario.xid(0, 79)
    scenario.save(path)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

GIB = 1024**3
MIB = 1024**2
NOT_AVAILABLE = (
    -1
)  # NVML_VALUE_NOT_AVAILABLE: the memory of a process that the driver does not tell
Holders = Mapping[int, Sequence[tuple[int, int]]]


@dataclass
class Card:
    """A card, or an instance of one; numbers in NVML's own units, None: not supported.

    Attributes:
        power: Milliwatts, as power_limit.
        throttle: Mask of reasons, 0x20 for SwThermalSlowdown.
        mig: 1: divided into instances; 0: it could be; None: it cannot.
        capability: 86 for 8.6.
        counts_reserved: 1: the second structure of memory has reserved memory among the used, as with some drivers.
        processes: pid and bytes.
    """

    name: str | None = "NVIDIA H100 80GB HBM3"
    uuid: str | None = "GPU-00000000-0000-0000-0000-000000000000"
    bus: str | None = "00000000:41:00.0"
    memory_total: int | None = 80 * GIB
    memory_reserved: int | None = 512 * MIB
    memory_used: int | None = 0
    utilization: int | None = 0
    temperature: int | None = 41
    slowdown: int | None = 89
    shutdown: int | None = 92
    power: int | None = 71_500
    power_limit: int | None = 700_000
    throttle: int | None = 0
    ecc_uncorrected: int | None = 0
    remapped_uncorrected: int | None = 0
    remapped_pending: int | None = 0
    remapped_failed: int | None = 0
    retired_pending: int | None = None
    mig: int | None = 0
    capability: int | None = 90
    counts_reserved: int | None = None
    processes: list[tuple[int, int]] = field(default_factory=list)
    instances: list[Card] = field(default_factory=list)

    def lines(self, begin: str) -> list[str]:
        """The card as lines of the file, each beginning with `begin`."""
        plain = [f.name for f in fields(self) if f.name not in ("processes", "instances")]
        known = [(name, getattr(self, name)) for name in plain if getattr(self, name) is not None]
        return [f"{begin} {name} {value}" for name, value in known] + [
            f"{begin} process {pid} {used}" for pid, used in self.processes
        ]


@dataclass
class Scenario:
    """All that the library shows.

    Attributes:
        cuda: 12040 for CUDA 12.4.
        names: Name of a process by pid.
        events: Card and Xid. What is there when a program begins to listen is past.
        calls: Lines on what goes wrong, as ``nvmlDeviceGetName fail 15 after 3 card 0``; see scenario.c.
        record: A file into which each call's name is written.
    """

    cards: list[Card] = field(default_factory=list)
    driver: str | None = "550.54.15"
    cuda: int | None = 12040
    names: dict[int, str] = field(default_factory=dict)
    events: list[tuple[int, int]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    record: Path | None = None

    def xid(self, card: int, number: int) -> None:
        """The driver reports a fault of a card, once this is saved."""
        self.events.append((card, number))

    def lose(self, card: int) -> None:
        """A card falls off the bus."""
        self.calls.append(f"* fail 15 card {card}")

    def text(self) -> str:
        """The file."""
        lines = [f"driver {self.driver}"] if self.driver else []
        lines += [f"cuda {self.cuda}"] if self.cuda else []
        lines += [f"record {self.record}"] if self.record else []
        for index, card in enumerate(self.cards):
            lines += card.lines(f"card {index}")
            for part, instance in enumerate(card.instances):
                lines += instance.lines(f"instance {index} {part}")
        lines += [f"process {pid} {name}" for pid, name in self.names.items()]
        lines += [f"event {card} {xid}" for card, xid in self.events]
        lines += [f"call {what}" for what in self.calls]
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> Path:
        """Write the file, at one stroke: a program that reads it sees the old one or the new one."""
        beside = path.with_name(path.name + ".new")
        beside.write_text(self.text(), encoding="utf-8", errors="surrogateescape")
        os.replace(beside, path)
        return path


def uuid(card: int, kind: str = "GPU", part: int = 0) -> str:
    """A made identity."""
    return f"{kind}-{card:08x}-0000-4000-8000-{part:012x}"


def holding(card: Card, processes: Sequence[tuple[int, int]], driver_bytes: int = 0) -> None:
    """Let processes hold memory of a card, beside what the driver needs; what is not available counts as 1 GiB."""
    card.processes = list(processes)
    used = sum(GIB if used == NOT_AVAILABLE else used for _, used in processes)
    card.memory_used = used + driver_bytes


def one_gpu(holders: Sequence[tuple[int, int]] = ((4711, 12 * GIB),)) -> Scenario:
    """A Tesla T4 that one process computes on, warm from it."""
    card = Card(
        name="Tesla T4",
        uuid=uuid(0xA1),
        bus="00000000:00:1E.0",
        memory_total=15 * GIB,
        memory_reserved=448 * MIB,
        utilization=83,
        temperature=71,
        slowdown=93,
        shutdown=96,
        power=66_400,
        power_limit=70_000,
        throttle=0x4,
        remapped_uncorrected=None,
        remapped_pending=None,
        remapped_failed=None,
        retired_pending=0,
        mig=None,
        capability=75,
    )
    holding(card, holders, 3 * MIB)
    return Scenario([card], names={pid: "/opt/conda/bin/python3.11" for pid, _ in holders})


def eight_gpus(holders: Holders | None = None) -> Scenario:
    """Eight H100; without `holders`, five processes on each."""
    if holders is None:
        holders = {
            card: [(10_000 + 100 * card + n, (n + 1) * GIB) for n in range(5)] for card in range(8)
        }
    cards = []
    for index in range(8):
        card = Card(uuid=uuid(index), bus=f"00000000:{0x19 + 0x11 * index:02X}:00.0")
        mine = holders.get(index, ())
        holding(card, mine, 4 * MIB)
        if mine:
            card.utilization, card.temperature, card.power = 90 + index, 60 + index, 540_000 + index
        cards.append(card)
    everybody = {pid for mine in holders.values() for pid, _ in mine}
    return Scenario(cards, names=dict.fromkeys(sorted(everybody), "/usr/bin/python3"))


def mig(holders: Mapping[int, Sequence[tuple[int, int]]] | None = None) -> Scenario:
    """One A100 in MIG mode with three instances, beside one that is not divided.

    Args:
        holders: By number of the instance.
    """
    if holders is None:
        holders = {0: [(5001, 17 * GIB)], 1: [(5002, 3 * GIB), (5003, 1 * GIB)]}
    sizes = (("3g.20gb", 20), ("2g.10gb", 10), ("1g.5gb", 5))
    instances = [
        Card(
            name=f"NVIDIA A100-SXM4-40GB MIG {profile}",
            uuid=uuid(0xB0, "MIG", part),
            bus=None,
            memory_total=gib * GIB - 256 * MIB,
            memory_reserved=0,
            **dict.fromkeys(_NOT_OF_AN_INSTANCE),
        )
        for part, (profile, gib) in enumerate(sizes)
    ]
    for part, instance in enumerate(instances):
        holding(instance, holders.get(part, ()), 13 * MIB)
    used = sum(instance.memory_used or 0 for instance in instances)
    divided = Card(
        name="NVIDIA A100-SXM4-40GB",
        uuid=uuid(0xB0),
        bus="00000000:07:00.0",
        memory_total=40 * GIB,
        memory_used=used,
        utilization=None,  # not told for a divided card
        temperature=52,
        power=184_000,
        power_limit=400_000,
        remapped_uncorrected=None,  # "not while MIG instances exist"
        remapped_pending=None,
        remapped_failed=None,
        mig=1,
        capability=80,
        instances=instances,
    )
    whole = Card(
        name="NVIDIA A100-SXM4-40GB",
        uuid=uuid(0xB1),
        bus="00000000:0A:00.0",
        memory_total=40 * GIB,
        power_limit=400_000,
        capability=80,
    )
    everybody = {pid for mine in holders.values() for pid, _ in mine}
    return Scenario([divided, whole], names=dict.fromkeys(sorted(everybody), "/usr/bin/python3"))


# What the driver tells of a card only.
_NOT_OF_AN_INSTANCE = (
    *("utilization", "temperature", "slowdown", "shutdown", "power", "power_limit"),
    *("throttle", "ecc_uncorrected", "remapped_uncorrected", "remapped_pending"),
    *("remapped_failed", "retired_pending", "mig"),
)
