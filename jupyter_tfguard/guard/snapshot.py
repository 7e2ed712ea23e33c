"""The state of a sampler during a cell, common to the native and the Python sampler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ..levels import Levels
from ..memory.groups import MemoryGroup


class Snapshot(NamedTuple):
    """State of a sampler for the running cell, or for the last one.

    Attributes:
        tripped: Available memory fell below the threshold in this cell.
        delivered: The exception was raised.
        trip_count: Number of trips; more than one if user code caught the exception and continued.
        trip_available_bytes: Available memory at the newest trip.
        trip_seconds_ago: Seconds since the newest trip; 0 if there was none.
        trip_added_bytes: Memory that this process and its children had added in the cell by then.
        lowest_available_bytes: Minimum since the cell began.
        fill_bytes_per_second: Current rate at which memory fills; negative if memory is being freed.
        refused_count: Number of allocations that the gate refused, by caller.
        last_refused_bytes: Size of the newest of these; 0 if there was none.
        last_refused_available_bytes: Available memory at that time.
        spilled_bytes: Bytes that the gate placed on disk instead.
    """

    tripped: bool = False
    delivered: bool = False
    trip_count: int = 0
    trip_available_bytes: int = 0
    trip_seconds_ago: float = 0.0
    trip_added_bytes: int = 0
    lowest_available_bytes: int = 0
    fill_bytes_per_second: float = 0.0
    refused_count: Mapping[str, int] = MappingProxyType({})
    last_refused_bytes: int = 0
    last_refused_available_bytes: int = 0
    spilled_bytes: int = 0


class MemorySampler(Protocol):
    """Samples the available memory while a cell runs."""

    def start(self, groups: Sequence[MemoryGroup], signal_number: int) -> None:
        """Start the thread, disarmed. Call from the main thread.

        Args:
            groups: As for :meth:`use_groups`.
            signal_number: Sent to the main thread at a trip, and every 10 ms until :meth:`delivered`.
        """

    def wait_for_trip(self) -> bool:
        """Wait for the next trip, in another thread. False after :meth:`stop`."""

    def use_groups(self, groups: Sequence[MemoryGroup]) -> None:
        """Read these memory groups, with and without a limit, from now on. Call while disarmed."""

    def total_bytes(self) -> int:
        """The smallest of the groups' limits and the machine's memory: the levels of a stop are parts of it."""

    def arm(self, levels: Levels) -> None:
        """Arm for a new cell; resets an earlier trip."""

    def disarm(self) -> None:
        """Disarm: no trips until the next :meth:`arm`."""

    def delivered(self) -> None:
        """Note that the exception was raised. Trips again if available memory continues to fall."""

    def exempt(self) -> AbstractContextManager[None]:
        """Refuse and interrupt nothing in this thread meanwhile."""

    def available_bytes(self) -> int:
        """Read the available memory now, in bytes."""

    def snapshot(self) -> Snapshot:
        """The current state."""

    def give_back(self, *, if_due: bool = False) -> int:
        """Return free memory of allocators to the system; takes up to 0.2 s, without the GIL.

        Args:
            if_due: Only if that was not done a moment ago.

        Returns:
            Bytes of TensorFlow's pool.
        """

    def stop(self) -> None:
        """Stop the thread."""
