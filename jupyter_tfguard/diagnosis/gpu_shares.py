"""Memory that each process held on the cards of a kernel, observed from outside before its end.

What the kernel's own allocator logs is in allocator_dump.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..decode import number_of
from ..units import human_bytes
from .evidence import Evidence
from .finding import Fact, Source
from .gpus import Gpu, GpuProcess

_CARDS = 2
_NAMED = 2


def used_cards(seen: Evidence) -> list[Gpu]:
    """The cards on which this kernel or one of its children was observed to hold memory."""
    return [gpu for gpu in seen.gpus if gpu.holds(seen.pid, _kernel_id(seen))]


def alone(seen: Evidence) -> bool:
    """True if it was observed that no other process held memory on this kernel's cards."""
    used = used_cards(seen)
    return bool(used) and not any(_others(seen, gpu) for gpu in used)


def share_facts(seen: Evidence) -> tuple[Fact, ...]:
    """How much memory this kernel and others held, and whether memory growth was active."""
    facts = []
    for gpu in used_cards(seen)[:_CARDS]:
        sizes = [p.used_bytes for p in gpu.processes or () if p.is_of(seen.pid, _kernel_id(seen))]
        known = [size for size in sizes if size is not None]
        if known and len(known) == len(sizes):
            text = f"The kernel held {_of(sum(known), gpu)} on {gpu.title} before the end; {_others_text(_others(seen, gpu))}"
            facts.append(Fact(Source.SERVER, text))
        if growth := _growth(gpu):
            facts.append(Fact(Source.SERVER, growth))
    return tuple(facts)


def _growth(gpu: Gpu) -> str | None:
    works, own = gpu.growth.get("works"), number_of(gpu.growth.get("own_bytes"))
    if not isinstance(works, bool) or own is None:
        return None
    if works:
        return f"Memory growth was active: the kernel started with {_of(own, gpu)}"
    return f"Memory growth was not active: {_of(own, gpu)} was allocated at once"


def _of(size: float, gpu: Gpu) -> str:
    total = gpu.memory_total_bytes
    return human_bytes(size) + (f" of {human_bytes(total)}" if total is not None else "")


def _others(seen: Evidence, gpu: Gpu) -> list[GpuProcess]:
    """Other processes on this card, largest memory first."""
    found = [p for p in gpu.processes or () if not p.is_of(seen.pid, _kernel_id(seen))]
    return sorted(found, key=lambda process: -(process.used_bytes or 0))


def _others_text(others: Sequence[GpuProcess]) -> str:
    if not others:
        return "no other process held memory on it"
    named = [
        p.title + (f" {human_bytes(p.used_bytes)}" if p.used_bytes is not None else "")
        for p in others[:_NAMED]
    ]
    more = len(others) - len(named)
    return "other processes on it: " + ", ".join(named) + (f" and {more} more" if more else "")


def _kernel_id(seen: Evidence) -> object:
    return seen.identity.get("kernel_id")
