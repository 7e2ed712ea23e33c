"""What the native library reports of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Snapshot(NamedTuple):
    """State of the running cell, or of the last one.

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
