"""Whether TensorFlow's memory growth is at work, seen from outside: how much of a card a kernel took when it began to use it.

Without growth TensorFlow's first request takes its whole pool: all that is free but some hundred MiB. With it the pool begins
with what the first tensors need. Only what a kernel took in its first seconds decides: later a pool that grew to the same
size proves nothing.

Source: tensorflow core/common_runtime/gpu/gpu_device.cc (MinSystemMemory) and tsl/framework/bfc_allocator.cc (Extend).
"""

from __future__ import annotations

from dataclasses import dataclass

from .gpu_cards import Card
from .monitored import MonitoredKernel

# TensorFlow leaves 225 MiB to 1 GiB, or a twentieth: of a card with room for more than this, less than a tenth.
LEAST_ROOM_BYTES = 4 << 30
# Of the room: a pool that was taken whole is above the first, with CUDA's own share; one that grows is believed below the other.
NEARLY_ALL_FRACTION = 0.85
FAR_LESS_FRACTION = 0.6
# A program whose tensors fill most of what it took had reason to take it.
LITTLE_USED_FRACTION = 0.5
# Looks, a second apart, while TensorFlow is at work: CUDA's context is there some seconds before the pool.
LOOKS = 3


@dataclass(frozen=True)
class GrowthSeen:
    """What was decided.

    Attributes:
        works: True when far less than the room was taken, False when nearly all of it was, for nothing.
        own_bytes: Held by the kernel then.
        total_bytes: Of the card.
        used_bytes: By TensorFlow's tensors at their highest; None = unknown.
    """

    works: bool
    own_bytes: int
    total_bytes: int
    used_bytes: int | None


class GrowthWatch:
    """One kernel on one card, from its first use on.

    Attributes:
        seen: What was decided; None before, and for good where it cannot be.
    """

    def __init__(self) -> None:
        self.seen: GrowthSeen | None = None
        self._looks = 0

    def look(self, card: Card, monitored: MonitoredKernel) -> None:
        """Take one look."""
        own, claimed = card.own_bytes(monitored), card.tensorflow(monitored) or {}
        total, free = card.device["memory_total_bytes"], card.device["memory_free_bytes"]
        peak, limit = claimed.get("peak_bytes"), claimed.get("limit_bytes")
        steps = (monitored.live.training or {}).get("step")
        # What comes after the first looks is no first use.
        if self._looks >= LOOKS or not own or free is None or not total or not (peak or steps):
            return
        self._looks += 1
        if self._looks < LOOKS:
            return
        room = own + free if limit is None else min(own + free, max(limit, own))
        if room < LEAST_ROOM_BYTES:
            return
        if own <= FAR_LESS_FRACTION * room:
            self.seen = GrowthSeen(True, own, total, peak)
        elif own >= NEARLY_ALL_FRACTION * room and peak and peak < LITTLE_USED_FRACTION * own:
            self.seen = GrowthSeen(False, own, total, peak)
