"""The largest arrays at the top level of the notebook, by name and bytes.

Covers objects whose size is cheap to read: NumPy arrays, TensorFlow tensors and variables, pandas frames and series.
Lists and dictionaries are not measured. No user code runs: types are compared, and attributes of unknown types are not
read.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from typing import Any

# Each name adds a few microseconds to the cell.
_NAMES_LIMIT = 500


def largest_arrays(namespace: dict[str, Any], count: int = 5) -> list[dict[str, Any]]:
    """The `count` largest arrays as ``{"name", "bytes"}``, largest first, among the newest 500 names.

    Args:
        namespace: The user's global names, newest last; those with a leading underscore are skipped.
    """
    sizes = Sizes()
    if not sizes.any_library:
        return []
    found = [(size, name) for name, value in newest(namespace) if (size := sizes.of(value))]
    found.sort(reverse=True)
    return [{"name": name, "bytes": size} for size, name in found[:count]]


def newest(namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """The user's names among the newest 500, cut to 80 characters, with their values, newest first."""
    try:
        found = list(itertools.islice(reversed(namespace.items()), _NAMES_LIMIT))
    except RuntimeError:
        return []  # a user thread is adding names at the same time
    return [
        (name[:80], value)
        for name, value in found
        if isinstance(name, str) and not name.startswith("_")
    ]


class Sizes:
    """Measures values of the libraries that are loaded when it is created."""

    def __init__(self) -> None:
        numpy, pandas = sys.modules.get("numpy"), sys.modules.get("pandas")
        self._ndarray = getattr(numpy, "ndarray", None)
        self._memmap = getattr(numpy, "memmap", None)
        self._frame = getattr(pandas, "DataFrame", None)
        self._series = getattr(pandas, "Series", None)
        self.any_library = self._ndarray is not None or "tensorflow" in sys.modules

    def of(self, value: Any) -> int | None:
        """Bytes of the value's data; None for a type that is not measured."""
        # `isinstance` reads the value's __class__, and a proxy may run its own code for that.
        kind = type(value)
        try:
            if self._ndarray is not None and issubclass(kind, self._ndarray):
                if self._memmap is not None and issubclass(kind, self._memmap):
                    return None  # its data is in a file
                return int(self._ndarray.nbytes.__get__(value))
            if self._frame is not None and kind is self._frame:
                widths = (getattr(dtype, "itemsize", 8) for dtype in value.dtypes)
                return int(value.shape[0]) * sum(map(int, widths))
            if self._series is not None and kind is self._series:
                return int(value.nbytes)
            if kind.__module__.startswith(("tensorflow.", "keras.src.", "tf_keras.src.")):
                return _tensor_bytes(value)
        except Exception:
            return None  # a partly constructed object
        return None


_TENSOR_KINDS = ("EagerTensor", "ResourceVariable", "Variable", "KerasVariable")


def _tensor_bytes(value: Any) -> int | None:
    if not any(kind.__name__ in _TENSOR_KINDS for kind in type(value).__mro__):
        return None
    sizes = [None if size is None else int(size) for size in tuple(value.shape)]
    if None in sizes:
        return None
    width = _width(value.dtype)
    return None if width is None else math.prod(s for s in sizes if s is not None) * width


def _width(dtype: Any) -> int | None:
    """Bytes of one element, from a TensorFlow dtype or a Keras 3 name like ``bfloat16``."""
    if not isinstance(dtype, str):
        return int(dtype.size) or None
    if dtype == "bool":
        return 1
    bits = re.match(r"[a-z]+(\d+)", dtype)  # float8_e4m3fn has 8
    return max(1, int(bits[1]) // 8) if bits else None
