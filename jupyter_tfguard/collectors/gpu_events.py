"""Xid events, as the driver reports them. Waiting for them takes a thread of its own."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable
from typing import Any

from .gpu_calls import FUNCTION_NOT_FOUND, NOT_SUPPORTED, TIMEOUT, UNKNOWN, attempt

_XID = 0x8  # nvmlEventTypeXidCriticalError
_WAIT_MILLISECONDS = 1000
_PAUSE_SECONDS = 1.0
# A wait that ends much sooner without an event "may return early": not to be repeated at full speed.
_EARLY_SECONDS = 0.1


def listen(nvml: Any, count: int, tell: Callable[[int | None, int, float], None]) -> None:
    """Tell each Xid event of the first `count` cards from now on; returns when there is nothing to listen to.

    Args:
        tell: Given the number of the card (None: not told), the Xid and the time in Unix seconds.
    """
    with contextlib.suppress(
        nvml.NVMLError
    ):  # the driver is gone, which is said by who reads the cards
        events, numbers = _register(nvml, list(range(count)))
        while events is not None:
            began = time.monotonic()
            data, error = attempt(nvml, "nvmlEventSetWait_v2", events, _WAIT_MILLISECONDS)
            if error in (FUNCTION_NOT_FOUND, NOT_SUPPORTED):
                return
            if error == 0 and data.eventType & _XID:
                # A card that is lost by now does not tell its number any more.
                index = numbers.get(_address(data.device))
                if index is None:
                    index, _ = attempt(nvml, "nvmlDeviceGetIndex", data.device)
                tell(index, int(data.eventData), time.time())
            elif error != TIMEOUT or time.monotonic() - began < _EARLY_SECONDS:
                time.sleep(
                    _PAUSE_SECONDS
                )  # also a lost card, of which every wait tells from now on


def _address(handle: Any) -> int | None:
    """What a handle, which is a pointer, points to; None for one that is no pointer."""
    try:
        return ctypes.cast(handle, ctypes.c_void_p).value
    except (TypeError, ctypes.ArgumentError):
        return None


def _register(nvml: Any, cards: list[int]) -> tuple[Any, dict[int | None, int]]:
    """A set of events of those cards that have any, None where none has; and their numbers by :func:`_address`."""
    while cards:
        events, error = attempt(nvml, "nvmlEventSetCreate")
        if error:
            break
        refused = []
        numbers: dict[int | None, int] = {}
        for index in cards:
            handle, error = attempt(nvml, "nvmlDeviceGetHandleByIndex", index)
            if not error:
                _, error = attempt(nvml, "nvmlDeviceRegisterEvents", handle, _XID, events)
                numbers[_address(handle)] = index
            if error:
                refused.append(index)
            if error == UNKNOWN:
                break
        else:
            return (events if len(refused) < len(cards) else None), numbers
        # "UNKNOWN leaves the set undefined: free it", and begin again without that card.
        attempt(nvml, "nvmlEventSetFree", events)
        cards = [index for index in cards if index not in refused]
    return None, {}
