"""Memory that a fit can use here: what is available, what this process already holds free, and on which device it runs.

TensorFlow's pool never returns memory to the system by itself, and malloc rarely does. After one fit, a second one of the
same size needs almost no new memory, even if little is available.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..collectors.resident import anonymous_bytes
from ..errors import SourceUnavailable, TfGuardError
from ..levels import Levels
from ..memory.available import binding_now
from ..memory.limits import Limit, LimitKind
from ..training.gpu_memory import GpuAllocators
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
    """Upper bound of the free memory in TensorFlow's CPU pool and in malloc; 0 if neither can be read.

    The size of the pool is estimated by the peak use of its tensors. Part of the free memory may have no pages, because
    it was never touched or was given back, so the result can be too high: adding it to the available memory can be too
    optimistic, but never too pessimistic.
    """
    return free_in_pool() + _free_in_malloc()


def free_in_pool() -> int:
    """Free bytes in TensorFlow's CPU pool. Source: ``TFE_GetMemoryInfo``, TensorFlow 2.15 to 2.21; with oneDNN, tensors
    of 256 KiB and more.

    The pool has no more pages than the process: its peak also counts tensors that were never written, and those whose
    memory was given back after a stop.
    """
    if not (found := _pool_state()):
        return 0
    size = int(found["peak"])
    with contextlib.suppress(SourceUnavailable):
        size = min(size, anonymous_bytes(os.getpid()))
    return max(0, size - int(found["current"]))


def too_little(need_bytes: int, available_bytes: Callable[[], int]) -> int | None:
    """What is available if that is less than the need, also after a garbage collection; else None.

    Reference cycles often keep an earlier model and its data alive.

    Args:
        need_bytes: What a run needs.
        available_bytes: Reads how much memory this process can still get from the system, including free swap.
    """
    if need_bytes <= available_bytes() + reusable_bytes():
        return None
    gc.collect()
    available = available_bytes() + reusable_bytes()
    return available if need_bytes > available else None


def has_pool() -> bool:
    """True if TensorFlow keeps the memory of large tensors in a pool, as it does with oneDNN."""
    return bool(_pool_state())


def _pool_state() -> Mapping[str, int]:
    """Peak and current bytes of the pool; empty without one."""
    context = eager_context()
    handle = getattr(context, "_context_handle", None)
    module = sys.modules.get(CONTEXT_MODULE)
    if handle is None or module is None:
        return {}
    with contextlib.suppress(Exception):  # without a pool the call raises an error
        found: Mapping[str, int] = module.pywrap_tfe.TFE_GetMemoryInfo(handle, "CPU:0")
        return found
    return {}


def uses_gpu() -> bool:
    """True if TensorFlow has created a GPU device in this process. Creates none."""
    return bool(GpuAllocators().devices())


def free_in_gpu_pool() -> int:
    """Free bytes in TensorFlow's pool on the first GPU, which is never returned to the card; 0 without a GPU."""
    found = GpuAllocators().read()
    return found[0].peak_bytes - found[0].in_use_bytes if found else 0


def gpu_pool_bytes() -> int:
    """Least size of TensorFlow's pool on the first GPU, in use or free; 0 without a GPU."""
    found = GpuAllocators().read()
    return found[0].peak_bytes if found else 0


def _free_in_malloc() -> int:
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return 0  # a C library other than glibc, or an older glibc
    mallinfo2.restype = _Mallinfo2
    return int(mallinfo2().fordblks)


class CannotEstimate(TfGuardError):
    """The memory of this fit cannot be estimated; the text says why and what to do."""


class Room(NamedTuple):
    """Memory that a cell can still use before the guard stops it, and the limit that binds."""

    available_bytes: int
    limit: Limit

    @classmethod
    def now(cls) -> Room:
        """Read the current values.

        Raises:
            CannotEstimate: This system has no memory figures.
        """
        try:
            found = binding_now()
        except SourceUnavailable as absent:
            raise CannotEstimate(f"The available memory is unknown. {absent}") from absent
        cap_bytes = Levels.of(found.smallest_bytes).stop_cap_bytes
        return cls(max(0, found.left_bytes - cap_bytes), found.limit)

    @classmethod
    def on_gpu(cls, free_bytes: int) -> Room:
        """The same on the first GPU, which has so much left for this process."""
        return cls(free_bytes, Limit(free_bytes + gpu_pool_bytes(), LimitKind.GPU))


def runs_on_host(model: Any) -> bool:
    """True if the steps of this model run only on the CPU in this process.

    Reads the devices that TensorFlow has already created, and creates none.
    """
    return device_types() == {"CPU"} and runs_in_this_process(model)


def runs_on_gpu(model: Any) -> bool:
    """True if the steps of this model run on the first GPU of this process."""
    return device_types() == {"CPU", "GPU"} and runs_in_this_process(model)


def device_types() -> set[str]:
    """Types of the devices that TensorFlow has created; empty before."""
    context = eager_context()
    if getattr(context, "_initialized", False) is not True:
        return set()
    return {str(one.device_type) for one in getattr(context, "_logical_devices", None) or ()}


def runs_in_this_process(model: Any) -> bool:
    """True with TensorFlow as Keras' backend, and without a distribution strategy."""
    strategy = getattr(model, "_distribute_strategy", None)
    if strategy is not None and not type(strategy).__name__.startswith("_Default"):
        return False
    keras = sys.modules.get("keras")
    is_keras_3 = getattr(keras, "__version__", "2").startswith("3")
    return not is_keras_3 or keras is None or bool(keras.backend.backend() == "tensorflow")
