"""Asks NVML by the name of a call, and remembers what a card, this driver or this user is not told.

The module ``pynvml`` is handed in: only ``gpu.py`` imports it. A call that it does not have counts as one that the
library does not have.
"""

from __future__ import annotations

import time
from typing import Any

# Source: nvml.h, nvmlReturn_t. Older packages lack the newer names.
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 2, 3, 4, 6
INSUFFICIENT_SIZE, DRIVER_NOT_LOADED, TIMEOUT, FUNCTION_NOT_FOUND = 7, 9, 10, 13
GPU_IS_LOST, LIB_RM_VERSION_MISMATCH, ECC_ON_VIRTUAL_GPU = 15, 18, 22
ARGUMENT_VERSION_MISMATCH, DEPRECATED, UNKNOWN = 25, 26, 999

DRIVER_GONE = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH})
# Asked again after this: a driver's settings and a user's rights change seldom.
ASK_AGAIN_SECONDS = 600.0

_ABSENT = frozenset(
    {INVALID_ARGUMENT, NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED}
)
_REFUSED = _ABSENT | {NO_PERMISSION, ECC_ON_VIRTUAL_GPU}
Call = tuple[Any, ...]


def attempt(nvml: Any, name: str, *arguments: Any) -> tuple[Any, int]:
    """What a call gives, and NVML's number of the error, 0 for none: then the first is None.

    Raises:
        nvml.NVMLError: The driver itself is gone (:data:`DRIVER_GONE`), whatever is asked.
    """
    call = getattr(nvml, name, None)
    if call is None:
        return None, FUNCTION_NOT_FOUND
    try:
        return call(*arguments), 0
    except nvml.NVMLError as bad:
        if bad.value in DRIVER_GONE:
            raise
        return None, bad.value
    # How nvidia-ml-py says since 12.555 that the library has no such list of processes.
    except getattr(nvml, "NVMLLibraryMismatchError", NotImplementedError):
        return None, FUNCTION_NOT_FOUND
    except ValueError:  # a name that is not UTF-8
        return None, UNKNOWN


class Asker:
    """Asks about one card.

    Attributes:
        errors: NVML's number by name and arguments of the call, of those that failed when last made.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._refused: dict[Call, float] = {}  # until when, by name and arguments
        self.errors: dict[Call, int] = {}

    def ask(self, name: str, *arguments: Any) -> Any:
        """The call's result; None where it is not told.

        Raises:
            nvml.NVMLError: The card is gone from the bus, or the driver is.
        """
        key = (name, *arguments)
        until = self._refused.get(key)
        if until is not None and time.monotonic() < until:
            return None
        found, error = attempt(self._nvml, name, self._handle, *arguments)
        if error == 0:
            self.errors.pop(key, None)
            return found
        self.errors[key] = error
        if error == GPU_IS_LOST:
            raise self._nvml.NVMLError(error)
        if error in _REFUSED:
            self._refused[key] = time.monotonic() + ASK_AGAIN_SECONDS
        return None

    def first(self, *calls: Call) -> Any:
        """The result of the first call, or of the next one where this driver, card or package has no such call."""
        for call in calls:
            found = self.ask(*call)
            if found is not None or self.errors.get(call) not in _ABSENT:
                return found
        return None


def text(value: Any) -> str | None:
    """A text of NVML, which nvidia-ml-py gave as bytes in some calls; None for None."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
