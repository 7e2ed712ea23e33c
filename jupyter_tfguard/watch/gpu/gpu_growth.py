"""Detects from outside whether TensorFlow's memory growth is in effect: how much of a card a kernel allocated at first.

Without growth, TensorFlow's first request allocates its whole pool: all free memory except some hundred MiB. With
growth, the pool starts with what the first tensors need. Only the first seconds count: a pool may later grow to the
same size.

Source: tensorflow core/common_runtime/gpu/gpu_device.cc (MinSystemMemory) and tsl/framework/bfc_allocator.cc (Extend).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..monitored import MonitoredKernel
from .gpu_cards import Card

# TensorFlow leaves 225 MiB to 1 GiB, or a twentieth, free: less than a tenth of a card with more room than this.
LEAST_ROOM_BYTES = 4 << 30
# Fractions of the room. Above the first the whole pool was allocated, with CUDA's share; below the second it grows.
NEARLY_ALL_FRACTION = 0.85
FAR_LESS_FRACTION = 0.6
# A program whose tensors fill most of its pool needed that much.
LITTLE_USED_FRACTION = 0.5
# Polls, a second apart, while TensorFlow works: CUDA's context exists some seconds before the pool.
POLLS = 3


@dataclass(frozen=True)
class GrowthSeen:
    """The result.

    Attributes:
        works: True if far less than the available room was allocated; False if nearly all was, without need.
        own_bytes: Held by the kernel at that time.
        total_bytes: Memory of the card.
        used_bytes: Peak of TensorFlow's tensors; None = unknown.
    """

    works: bool
    own_bytes: int
    total_bytes: int
    used_bytes: int | None


class GrowthWatch:
    """Observes one kernel on one card, starting with its first use.

    Attributes:
        seen: The result; None before it is known, and permanently if it cannot be determined.
    """

    def __init__(self) -> None:
        self.seen: GrowthSeen | None = None
        self._polls = 0

    def poll(self, card: Card, monitored: MonitoredKernel) -> None:
        """Process one poll."""
        own, claimed = card.own_bytes(monitored), card.tensorflow(monitored) or {}
        total, free = card.device["memory_total_bytes"], card.device["memory_free_bytes"]
        peak, limit = claimed.get("peak_bytes"), claimed.get("limit_bytes")
        steps = (monitored.live.training or {}).get("step")
        # Only the first polls show the first use.
        if self._polls >= POLLS or not own or free is None or not total or not (peak or steps):
            return
        self._polls += 1
        if self._polls < POLLS:
            return
        room = own + free if limit is None else min(own + free, max(limit, own))
        if room < LEAST_ROOM_BYTES:
            return
        if own <= FAR_LESS_FRACTION * room:
            self.seen = GrowthSeen(True, own, total, peak)
        elif own >= NEARLY_ALL_FRACTION * room and peak and peak < LITTLE_USED_FRACTION * own:
            self.seen = GrowthSeen(False, own, total, peak)
