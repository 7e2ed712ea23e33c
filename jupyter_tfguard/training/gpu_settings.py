"""What TensorFlow has been told of its GPUs: read from its own memory, without calling it.

A call would list or create the devices, and with them a CUDA context.

Source: ``tensorflow.python.eager.context``, attributes of its one ``Context``, seen with TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

CONTEXT_MODULE = "tensorflow.python.eager.context"
_MIB = 1024 * 1024


@dataclass(frozen=True)
class GpuSetting:
    """One GPU that TensorFlow is to use.

    Attributes:
        name: ``GPU:0``.
        growth: What set_memory_growth asked for; None: nothing.
        limit_bytes: Sum of the limits of its logical devices; None: it has none.
        configured: Its logical devices as they are kept.
    """

    name: str
    growth: bool | None
    limit_bytes: int | None
    configured: object = None


def gpus_initialised() -> bool:
    """True when TensorFlow has created its devices in this process; nothing that is set later counts."""
    return getattr(eager_context(), "_context_handle", None) is not None


def gpu_settings() -> tuple[GpuSetting, ...] | None:
    """The GPUs that TensorFlow is to use; None before it has looked for them."""
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
    """The object that holds the settings; None before there is one."""
    return getattr(sys.modules.get(CONTEXT_MODULE), "_context", None)


def _limit(configured: Any) -> int | None:
    """Bytes; TensorFlow keeps MiB, though it says MB."""
    sizes = [device.memory_limit for device in configured or ()]
    known = [size for size in sizes if size is not None]
    return int(sum(known) * _MIB) if known else None
