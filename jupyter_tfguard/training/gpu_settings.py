"""Reads TensorFlow's GPU settings from the attributes of its context, without calling it.

A call would list or create the devices, and with them a CUDA context.

Source: ``tensorflow.python.eager.context``, attributes of its only ``Context``, verified with TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

CONTEXT_MODULE = "tensorflow.python.eager.context"
_MIB = 1024 * 1024


class GpuSetting(NamedTuple):
    """One GPU that is visible to TensorFlow.

    Attributes:
        name: Such as ``GPU:0``.
        growth: The argument of set_memory_growth; None if it was not called.
        limit_bytes: Sum of the limits of its logical devices; None without a limit.
        configured: TensorFlow's object for its logical devices.
    """

    name: str
    growth: bool | None
    limit_bytes: int | None
    configured: object = None


def gpus_initialised() -> bool:
    """True once TensorFlow has created its devices in this process; later settings have no effect."""
    return getattr(eager_context(), "_context_handle", None) is not None


def gpu_settings() -> tuple[GpuSetting, ...] | None:
    """The GPUs visible to TensorFlow; None before it has searched for GPUs."""
    context = eager_context()
    physical = getattr(context, "_physical_devices", None)
    if not isinstance(physical, list):
        return None
    visible = getattr(context, "_visible_device_list", physical)
    growth = getattr(context, "_memory_growth_map", {})
    logical = getattr(context, "_virtual_device_map", {})
    return tuple(
        # /physical_device:GPU:0
        GpuSetting(
            str(device.name).removeprefix("/physical_device:"),
            growth.get(device),
            _limit(logical.get(device)),
            logical.get(device),
        )
        for device in physical
        if device.device_type == "GPU" and device in visible
    )


def eager_context() -> Any:
    """TensorFlow's context, which contains the settings; None before it exists."""
    return getattr(sys.modules.get(CONTEXT_MODULE), "_context", None)


def _limit(configured: Any) -> int | None:
    """Sum in bytes. TensorFlow stores MiB, although it calls them MB."""
    sizes = [device.memory_limit for device in configured or ()]
    known = [size for size in sizes if size is not None]
    return int(sum(known) * _MIB) if known else None
