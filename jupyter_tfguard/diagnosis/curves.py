"""The curves beside the kernel's own memory: what its limit counts, its child processes, and its part of each GPU."""

from __future__ import annotations

from dataclasses import dataclass

from ..limits import (
    ADDRESS_SPACE_LIMIT,
    CONTAINER_LIMIT,
    DATA_LIMIT,
    MACHINE_MEMORY,
)
from .evidence import Evidence
from .limits_seen import use_of

Samples = list[tuple[float, float]]

_USE_TITLES = {
    CONTAINER_LIMIT: "In use in the container",
    MACHINE_MEMORY: "In use in the machine",
    ADDRESS_SPACE_LIMIT: "Address space in use",
    DATA_LIMIT: "Data in use",
}
_CURVES_LIMIT = 16  # two of each card of a machine with eight


@dataclass(frozen=True)
class Curve:
    """One metric over time.

    Attributes:
        name: For programs, ``cgroup.used_bytes``; of a GPU with its number in the list.
        title: For people.
        samples: (Unix seconds, bytes), oldest first.
        limit_bytes, limit_name: What it must not pass; None where that is not known, or the limit of the kernel's memory.
        is_gpu: Memory of a GPU, which has a limit of its own.
    """

    name: str
    title: str
    samples: Samples
    limit_bytes: int | None = None
    limit_name: str | None = None
    is_gpu: bool = False


def limit_curve(seen: Evidence) -> Samples:
    """(Unix seconds, bytes) of what the binding limit counts, file cache that could be given back left out."""
    limit = seen.limit()
    return [] if limit is None else use_of(seen, limit)


def curves(seen: Evidence, since: float) -> list[Curve]:
    """Those that exist, from `since` on, Unix seconds; a curve that is 0 throughout tells nothing and is left out."""
    limit = seen.limit()
    title = _USE_TITLES[CONTAINER_LIMIT if limit is None else limit.name]
    children = seen.timeline("process.children_rss_bytes")
    found = [
        Curve("limit.used_bytes", title, limit_curve(seen)),
        Curve(
            "process.children_rss_bytes", "Child processes", [(p.time, p.highest) for p in children]
        ),
    ]
    for place, gpu in enumerate(seen.gpus):
        # The history of a card that the kernel held nothing of tells of others.
        own = gpu.series("own_bytes")
        if any(value > 0 for _, value in own):
            total = int(gpu.memory_total_bytes) if gpu.memory_total_bytes else None
            card = gpu.short_title
            name = f"{card} memory" if total else None
            for column, title, samples in (
                ("own_bytes", f"{card}: this kernel", own),
                ("memory_used_bytes", f"{card}: in use", gpu.series("memory_used_bytes")),
            ):
                found.append(
                    Curve(f"gpu{place}.{column}", title, samples, total, name, is_gpu=True)
                )
    cut = [_since(curve, since, seen.died) for curve in found]
    return [curve for curve in cut if any(value > 0 for _, value in curve.samples)][:_CURVES_LIMIT]


def _since(curve: Curve, since: float, died: float) -> Curve:
    samples = [(when, value) for when, value in curve.samples if since <= when <= died + 1]
    return Curve(
        curve.name, curve.title, samples, curve.limit_bytes, curve.limit_name, curve.is_gpu
    )
