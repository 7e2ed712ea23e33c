"""The only module that parses and prints bytes, seconds, counts and times of day.

Bytes are Python ints until they are printed. Unknown (None or NaN) prints as an en dash, never as 0. The panel prints
bytes and counts by the same rule (``units.ts``): ``tests/wire/numbers.json`` has samples. A document that may be read
elsewhere has times in UTC, everything else local times; both name the zone.
"""

from __future__ import annotations

import datetime
import math

UNKNOWN_TEXT = "–"
KIB = 1024
MIB = 1024**2
GIB = 1024**3

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def is_known(number: float | None) -> bool:
    """True for a usable number; False for None, NaN and infinite or excessively large numbers."""
    # A comparison works for an integer of any length, a conversion to float does not; comparisons with NaN are false.
    return number is not None and -1e300 < number < 1e300


def human_bytes(number: float | None) -> str:
    """Bytes as text in binary units: ``14.9 GiB``, ``312 MiB``."""
    if number is None or math.isnan(number):
        return UNKNOWN_TEXT
    sign = "-" if number < 0 else ""
    size = abs(float(number))
    for unit in _BYTE_UNITS:
        # 1023.5 and more of a unit would round to "1024 MiB": use the next unit instead.
        if size < 1023.5 or unit == _BYTE_UNITS[-1]:
            break
        size /= 1024
    if unit == "B":
        return f"{sign}{size:.0f} {unit}"
    if unit in ("KiB", "MiB"):
        return f"{sign}{size:.0f} {unit}"
    return f"{sign}{size:.2f} {unit}" if size < 9.995 else f"{sign}{size:.1f} {unit}"


def human_seconds(seconds: float | None) -> str:
    """A duration as text: ``18 ms``, ``4.2 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds is None or math.isnan(seconds):
        return UNKNOWN_TEXT
    if seconds < 0:
        return f"-{human_seconds(-seconds)}"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if whole < 86400:
        hours, rest = divmod(whole, 3600)
        return f"{hours} h {rest // 60} min" if rest >= 60 else f"{hours} h"
    days, rest = divmod(whole, 86400)
    return f"{days} d {rest // 3600} h" if rest >= 3600 else f"{days} d"


def human_count(number: float | None) -> str:
    """A count as text: ``9.8 M``, ``12,345``."""
    if number is None or math.isnan(number):
        return UNKNOWN_TEXT
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:,.0f}"


def local_time(moment: float | str) -> str:
    """A time in the local zone: ``2026-11-21 02:14:07 CET``; a text that is not a time stays as it is.

    Args:
        moment: Unix seconds, or ISO 8601.
    """
    try:
        found = (
            datetime.datetime.fromisoformat(moment.replace("Z", "+00:00"))
            if isinstance(moment, str)
            else datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
        )
    except (ValueError, OverflowError, OSError):
        return str(moment)
    return found.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def parse_kib(text: str) -> int:
    """Bytes from the OS kernel's ``1234 kB``, where "kB" means KiB. Source: proc_pid_status(5).

    Raises:
        ValueError: The text is not such a size.
    """
    number, _, unit = text.strip().partition(" ")
    if unit.strip() not in ("kB", ""):
        raise ValueError(f"not a size in kB: {text!r}")
    return int(number) * KIB


def out_of(unit: str, number: int, total: int | None) -> str:
    """``epoch 3 of 10``; ``epoch 3`` if the total is not known."""
    return f"{unit} {number} of {total}" if total else f"{unit} {number}"
