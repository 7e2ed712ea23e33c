"""Sizes of variables, symbolic tensors and arrays in bytes, from their shape and dtype."""

from __future__ import annotations

import math
import re
from typing import Any

_BITS = re.compile(r"[a-z]+(\d+)")  # bfloat16; float8_e4m3fn has 8
_DEFAULT_BYTES = 4


def item_bytes(dtype: Any) -> int:
    """Bytes of one element of a NumPy or TensorFlow dtype, or a dtype name; 4 if the name shows no size."""
    name = str(getattr(dtype, "name", dtype))
    bits = _BITS.match(name)
    if bits is not None:
        return max(1, int(bits[1]) // 8)
    return 1 if name == "bool" else _DEFAULT_BYTES


def variable_bytes(variable: Any) -> int:
    """Bytes of a variable of any version of Keras."""
    return math.prod(int(size) for size in variable.shape) * item_bytes(variable.dtype)
