"""The levels of available memory at which the guard acts.

The guard must not stop a run that would have survived. Programs that peak at 95 to 97 % of their limit are healthy, so
the levels are only a few percent. The level that rises with the fill rate has a tight cap: with a longer look-ahead, a
short burst of 3 GB/s would cause a false stop.
"""

from __future__ import annotations

from typing import NamedTuple

from .units import GIB, MIB

# Measured with 8 healthy programs at 95 to 97 % of 2 GiB: none was stopped. With a cap of 4 % a fast NumPy program was.
_STOP_FRACTION, _STOP_MIN_BYTES, _STOP_MAX_BYTES = 0.0225, 32 * MIB, 512 * MIB
_CAP_FRACTION, _CAP_MIN_BYTES, _CAP_MAX_BYTES = 0.03, 48 * MIB, GIB
_RESERVE_FRACTION, _RESERVE_MIN_BYTES, _RESERVE_MAX_BYTES = 0.01, 16 * MIB, 256 * MIB
# Other processes may fill the memory, too. Then the system kills the largest of them, and this kernel may survive.
_OWN_FRACTION = 0.25
# From the signal to the exception in Python code, with a margin.
_RATE_SECONDS = 0.06


class Levels(NamedTuple):
    """Available memory at which the guard acts during one cell, in bytes.

    Attributes:
        stop_bytes: The cell is stopped if less is available.
        stop_cap_bytes: If memory fills fast, the cell is stopped earlier, at most at this level.
        rate_seconds: How far ahead the fill rate is extrapolated.
        reserve_bytes: A single allocation that would leave less is refused.
        total_bytes: The smallest limit, of which the levels are parts.
        own_fraction: Of the fall of available memory, how much this process must have caused for a stop.
    """

    stop_bytes: int
    stop_cap_bytes: int
    rate_seconds: float
    reserve_bytes: int
    total_bytes: int
    own_fraction: float = _OWN_FRACTION

    @classmethod
    def of(cls, total_bytes: int) -> Levels:
        """The levels for a memory limit."""

        def part(fraction: float, least: int, most: int) -> int:
            return min(most, max(least, int(total_bytes * fraction)))

        return cls(
            part(_STOP_FRACTION, _STOP_MIN_BYTES, _STOP_MAX_BYTES),
            part(_CAP_FRACTION, _CAP_MIN_BYTES, _CAP_MAX_BYTES),
            _RATE_SECONDS,
            part(_RESERVE_FRACTION, _RESERVE_MIN_BYTES, _RESERVE_MAX_BYTES),
            total_bytes,
        )

    def for_cell(self, available_bytes: int) -> Levels:
        """The levels for a cell that starts with this much available: a nearly full kernel can run small cells."""
        left = max(0, available_bytes)
        return Levels(
            min(self.stop_bytes, left // 3),
            min(self.stop_cap_bytes, left // 2),
            self.rate_seconds,
            min(self.reserve_bytes, left // 8),
            self.total_bytes,
        )
