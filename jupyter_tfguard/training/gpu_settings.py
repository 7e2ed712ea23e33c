"""What TensorFlow has been told of its GPUs: read from its own memory, without calling it.

A call would list or create the devices, and with them a CUDA context.

Source: ``tensorflow.python.eager.context``, attributes of its one ``Context``, seen with TensorFlow 2.15 to 2.21.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

_CONTEXT_MODULE = "tensorflow.python.eager.context"
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


@dataclass(frozen=True)
class GpuSettings:
    """All that matters to GPU memory.

    Attributes:
        initialised: The devices exist; nothing that is set later counts.
        listed: TensorFlow has looked for GPUs; before, `gpus` is empty.
        gpus: Those it is to use.
        others: How many more it found, and the user made invisible.
        logical_devices: Logical devices of any kind are configured.
    """

    initialised: bool = False
    listed: bool = False
    gpus: tuple[GpuSetting, ...] = ()
    others: int = 0
    logical_devices: bool = False


def gpus_initialised() -> bool:
    """True when TensorFlow has created its devices in this process."""
    return getattr(eager_context(), "_context_handle", None) is not None


def gpu_settings() -> GpuSettings:
    """How it stands now."""
    context = eager_context()
    physical = getattr(context, "_physical_devices", None)
    if not isinstance(physical, list):
        return GpuSettings(gpus_initialised())
    found = [device for device in physical if getattr(device, "device_type", None) == "GPU"]
    visible = getattr(context, "_visible_device_list", None)
    shown = [d for d in found if not isinstance(visible, list) or d in visible]
    growth = _dict(context, "_memory_growth_map")
    logical = _dict(context, "_virtual_device_map")
    gpus = tuple(
        GpuSetting(
            _name(device), growth.get(device), _limit(logical.get(device)), logical.get(device)
        )
        for device in shown
    )
    return GpuSettings(
        gpus_initialised(), True, gpus, len(found) - len(shown), logical_devices=bool(logical)
    )


def eager_context() -> Any:
    """The object that holds the settings; None before there is one."""
    return getattr(sys.modules.get(_CONTEXT_MODULE), "_context", None)


def _dict(context: object, name: str) -> dict[Any, Any]:
    found = getattr(context, name, None)
    return found if isinstance(found, dict) else {}


def _name(device: Any) -> str:
    # /physical_device:GPU:0
    return str(getattr(device, "name", "GPU")).removeprefix("/physical_device:")


def _limit(configured: object) -> int | None:
    """Bytes; TensorFlow keeps MiB, though it says MB."""
    sizes = [
        getattr(device, "memory_limit", None)
        for device in (configured if isinstance(configured, (list, tuple)) else ())
    ]
    known = [size for size in sizes if isinstance(size, (int, float))]
    return int(sum(known) * _MIB) if known else None
