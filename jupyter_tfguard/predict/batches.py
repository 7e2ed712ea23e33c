"""The size of the first batch, if it is certain, and of the copies that Keras makes of whole arrays before it."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Mapping
from typing import Any

from ..training.plan import fit_plan, leaves
from .sizes import item_bytes

LARGEST_BATCH = 1 << 20  # considered for data whose samples are not counted
_ALIGNMENT = 64
_ARRAYS_LIMIT = 256  # a list of numbers can be much longer


def batch_size(arguments: Mapping[str, Any]) -> int | None:
    """Number of samples in the first batch of ``fit``, never an overestimate; None if it is not certain."""
    return fit_plan(arguments).first_batch


def sample_count(arguments: Mapping[str, Any]) -> int | None:
    """Number of samples that ``fit`` trains on, at most; None if unknown."""
    return fit_plan(arguments).sample_count


def rounded_down(size: int, digits: int = 2) -> int:
    """The next smaller or equal number that has this many leading binary digits and then zeros; at least 1."""
    step = 1 << max(0, size.bit_length() - digits)
    return max(1, size // step * step)


def copied_bytes(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """Bytes of the tensors that Keras copies arrays into, and the peak bytes while it copies them.

    Keras copies whole NumPy arrays: floating-point arrays of another dtype are converted first, then TensorFlow copies
    them. A memory-mapped file, or an array whose alignment TensorFlow accepts, may not be copied.

    Args:
        arguments: The arguments of ``fit``, by name.
    """
    kept = highest = 0
    data = [arguments.get(name) for name in ("x", "y", "sample_weight", "validation_data")]
    for array in itertools.islice(leaves(data), _ARRAYS_LIMIT):
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(array, numpy.ndarray) or array.dtype == object:
            continue
        size = int(array.nbytes)
        is_converted = array.dtype.kind == "f" and array.dtype.name != _float_name()
        if is_converted:
            size = int(array.size) * item_bytes(_float_name())
        elif _may_be_shared(array):
            continue
        highest = max(highest, kept + (2 * size if is_converted else size))
        kept += size
    return kept, highest


def uncopied_bytes(arguments: Mapping[str, Any], used_count: int) -> int:
    """Bytes of those copies that a fit of only so many samples does not have.

    Args:
        arguments: The arguments of ``fit``, by name.
        used_count: Number of samples.
    """
    count = sample_count(arguments)
    if not count:
        return 0
    copies, _ = copied_bytes(arguments)
    return copies * max(0, count - used_count) // count


def _may_be_shared(array: Any) -> bool:
    return bool(array.flags.c_contiguous) and array.ctypes.data % _ALIGNMENT == 0


def _float_name() -> str:
    for name in ("keras", "tf_keras"):
        with contextlib.suppress(AttributeError):
            return str(sys.modules[name].backend.floatx()) if name in sys.modules else "float32"
    return "float32"
