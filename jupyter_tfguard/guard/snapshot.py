"""What a sampler says of a cell: the same for the native one and the one in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..collectors.memory_group import MemoryGroup
from .levels import Levels


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a sampler now; of the running cell, or of the last one.

    Attributes:
        tripped: Available memory fell below the threshold in this cell.
        delivered: The exception was raised.
        trip_count: How often; more than once when user code caught the exception and went on.
        trip_available_bytes: What was left at the trip.
        trip_seconds_ago: Since the newest trip; 0 when there was none.
        lowest_available_bytes: Since the cell began.
        fill_bytes_per_second: How fast memory fills now; negative when it is given back.
        refused_count: Allocations that the gate refused, by caller.
        last_refused_bytes: Size of the newest of these; 0 when there was none.
        last_refused_available_bytes: What was available then.
        spilled_bytes: What the gate placed on disk instead.
    """

    tripped: bool = False
    delivered: bool = False
    trip_count: int = 0
    trip_available_bytes: int = 0
    trip_seconds_ago: float = 0.0
    lowest_available_bytes: int = 0
    fill_bytes_per_second: float = 0.0
    refused_count: dict[str, int] = field(default_factory=dict)
    last_refused_bytes: int = 0
    last_refused_available_bytes: int = 0
    spilled_bytes: int = 0


class MemorySampler(Protocol):
    """Follows the available memory while a cell runs."""

    def start(self, groups: Sequence[MemoryGroup], wake_fd: int, signal_number: int) -> None:
        """Start the thread, disarmed. Call from the main thread.

        Args:
            groups: As for :meth:`use_groups`.
            wake_fd: Gets a byte at each trip; must not block.
            signal_number: Sent to the main thread at a trip, and every 10 ms until :meth:`delivered`.
        """

    def use_groups(self, groups: Sequence[MemoryGroup]) -> None:
        """Read these memory groups, with and without a limit, from now on; while disarmed."""

    def total_bytes(self) -> int:
        """The limit that binds: the smallest of the groups' and of the machine's memory."""

    def arm(self, levels: Levels) -> None:
        """A cell begins. Forgets an earlier trip."""

    def disarm(self) -> None:
        """No trip from here on."""

    def delivered(self) -> None:
        """The exception was raised. Trips again if memory falls on."""

    def available_bytes(self) -> int:
        """Read now."""

    def snapshot(self) -> Snapshot:
        """The state now."""

    def stop(self) -> None:
        """End the thread."""
