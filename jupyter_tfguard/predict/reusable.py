"""Memory that this process holds and does not use: a fit takes it first, before it asks the system for more.

TensorFlow's pool never gives memory back, and malloc rarely does. After one fit, a second one of the same size needs almost
nothing new, though little may be available.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

from ..training.gpu_settings import CONTEXT_MODULE, eager_context


class _Mallinfo2(ctypes.Structure):
    """Source: mallinfo2(3), glibc 2.33 and newer."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def reusable_bytes() -> int:
    """Free memory in TensorFlow's CPU pool and in malloc, at most; 0 where neither can be read.

    The pool is known by the highest use of its tensors so far. A part of the free memory may never have been touched, so
    this can be too much, and a caller that adds it to the available memory can be too optimistic, never too pessimistic.
    """
    return _free_in_pool() + _free_in_malloc()


def _free_in_pool() -> int:
    """Source: ``TFE_GetMemoryInfo``, TensorFlow 2.15 to 2.21; with oneDNN, tensors of 256 KiB and more."""
    context = eager_context()
    handle = getattr(context, "_context_handle", None)
    module = sys.modules.get(CONTEXT_MODULE)
    if handle is None or module is None:
        return 0
    with contextlib.suppress(Exception):  # without a pool the allocator answers with an error
        found = module.pywrap_tfe.TFE_GetMemoryInfo(handle, "CPU:0")
        return max(0, int(found["peak"]) - int(found["current"]))
    return 0


def _free_in_malloc() -> int:
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return 0  # another C library, or an older glibc
    ask.restype = _Mallinfo2
    return int(ask().fordblks)
