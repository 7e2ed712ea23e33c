"""Texts about memory growth, used by the kernel, the panel and the doctor.

Every text starts in lower case, so that it fits inside a sentence, and names the action if one is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from .places import GROWTH_VARIABLE
from .units import human_bytes

ALLOCATOR_VARIABLE = "TF_GPU_ALLOCATOR"
ASYNC_ALLOCATOR = "cuda_malloc_async"
_GROWTH_OPTION = "TfGuard.set_memory_growth"
LIMIT_OPTION = "TfGuard.gpu_memory_limit_mib"
_LATE_FIX = "restart the kernel and load tfguard before TensorFlow"

ON = "memory growth on"
ON_BY_CALL = "memory growth on, by your own call"
AT_START = "set at kernel start, before TensorFlow reads it"
AT_ONCE = "TensorFlow allocates nearly all GPU memory at once"
OFF_BY_OPTION = f"memory growth off: {_GROWTH_OPTION} is False"
REMOVED = f"memory growth unknown: {GROWTH_VARIABLE} was removed"
TOO_LATE = f"memory growth was set too late, because TensorFlow had already initialized its GPUs: {_LATE_FIX}"
# Growth is a setting of TensorFlow's own allocator; these texts are about the other allocator.
ASYNC_POOL = "CUDA's own memory pool allocates as needed, and memory growth has no effect on it"
ASYNC = f"{ALLOCATOR_VARIABLE}={ASYNC_ALLOCATOR}: {ASYNC_POOL}"
ASYNC_NEEDS = "on a card below compute capability 6.0, or with a driver older than CUDA 11.2, TensorFlow aborts"
ASYNC_NO_CAP = "CUDA's own memory pool ignores a memory limit"
CAP_LATE = f"too late for {LIMIT_OPTION}, because TensorFlow had already initialized its GPUs: restart the kernel"


def off_by_variable(where: str = "") -> str:
    """The user has set the variable to false."""
    return f"memory growth off: {GROWTH_VARIABLE}=false{where} is your setting and takes precedence"


def not_understood(value: str, where: str = "") -> str:
    """The variable has a value that TensorFlow does not understand."""
    return f"memory growth not set: TensorFlow does not understand {GROWTH_VARIABLE}={value[:20]!r}{where}; use true or false"


def against_call(ours: bool) -> str:
    """The variable overrides the user's ``set_memory_growth(False)``."""
    if ours:
        return f"{ON}: tfguard's variable overrides your set_memory_growth(False); set {_GROWTH_OPTION} = False to turn it off"
    return f"{ON}: {GROWTH_VARIABLE}=true overrides your set_memory_growth(False)"


def capped(limit_bytes: int, *, grows: bool | None = None) -> str:
    """The limit of the option; `grows` is None if it is not known yet how memory below it is allocated."""
    text = f"GPU memory limited to {human_bytes(limit_bytes)} per card by {LIMIT_OPTION}"
    if grows is None:
        return text
    return f"{text}, {'allocated as needed' if grows else 'all allocated at once'}"


def capped_by_user(limits: Sequence[tuple[str, int | None]], *, grows: bool) -> str:
    """The user has configured logical devices.

    Args:
        limits: Each GPU with the sum of its limits in bytes; None for a GPU without one.
        grows: The variable forces growth.
    """
    listed = ", ".join(
        f"{name} unlimited" if size is None else f"{name} to {human_bytes(size)}"
        for name, size in limits[:4]
    )
    if len(limits) > 4:
        listed += f", and {len(limits) - 4} more"
    how = (
        f"{ON} up to that limit"
        if grows
        else f"without memory growth: TensorFlow does not set it together with a limit; {GROWTH_VARIABLE}=true turns it on"
    )
    return f"GPU memory limited by your logical devices ({listed}), {how}"


def seen_working(text: str, held_bytes: int, total_bytes: int) -> str:
    """Memory after the first steps shows that the process allocates as needed.

    Args:
        text: The kernel's text about growth.
    """
    took = f"{human_bytes(held_bytes)} of {human_bytes(total_bytes)}"
    return f"{text}, confirmed: {took} in use after the first steps"


def seen_not_in_force(held_bytes: int, total_bytes: int, used_bytes: int | None) -> str:
    """The process allocated nearly the whole card at once.

    Args:
        used_bytes: In TensorFlow's tensors; None = unknown.
    """
    took = f"{human_bytes(held_bytes)} of {human_bytes(total_bytes)}"
    return (
        f"memory growth is set but has no effect: TensorFlow allocated {took} at once and uses {human_bytes(used_bytes)}; "
        "restart the kernel, and find the code that initializes TensorFlow's devices before tfguard is loaded"
    )
