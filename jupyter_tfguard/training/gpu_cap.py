"""Caps the GPU memory of this kernel if the option is set, so that two notebooks can share a GPU.

Makes one call per GPU, directly after user code imports TensorFlow and before TensorFlow creates its devices. Any
configuration by the user, earlier or later, takes precedence.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .gpu_settings import eager_context, gpus_initialised

_MIB = 1024 * 1024


class GpuCap:
    """Caps each GPU that is visible to TensorFlow.

    Args:
        limit_mib: MiB per GPU; None for no cap, and then TensorFlow is never called.
    """

    def __init__(self, limit_mib: int | None) -> None:
        self._limit_mib = limit_mib
        self._configured: dict[Any, Any] = {}  # logical devices by GPU, compared by identity
        self.came_late = False

    @property
    def limit_bytes(self) -> int | None:
        """The cap; None until it is set."""
        return self._limit_mib * _MIB if self._limit_mib is not None and self._configured else None

    @property
    def configured(self) -> frozenset[int]:
        """Ids of the logical devices that this object configured."""
        return frozenset(map(id, self._configured.values()))

    def apply(self, tensorflow: ModuleType) -> None:
        """Set the cap once.

        Raises:
            Exception: Any exception of TensorFlow, which then runs without a cap.
        """
        if self._limit_mib is None or self._configured:
            return
        if gpus_initialised():
            self.came_late = True
            return
        config: Any = tensorflow.config
        try:
            for gpu in config.get_visible_devices("GPU"):
                if config.get_logical_device_configuration(gpu) is not None:
                    continue  # configured by the user
                logical = [config.LogicalDeviceConfiguration(memory_limit=self._limit_mib)]
                config.set_logical_device_configuration(gpu, logical)
                self._configured[gpu] = logical
        finally:
            _allow_growth_calls(self._configured)


class _Configured(dict[Any, Any]):
    """TensorFlow's table of logical devices, which does not count those of the cap as set by the user.

    ``set_memory_growth`` raises for a GPU that is in this table, which it checks with ``in``; all other code reads the
    value. Most notebooks call ``set_memory_growth``, and they must work as before when the option is set.
    """

    mine: dict[Any, Any]

    def __contains__(self, device: object) -> bool:
        found = self.get(device)
        return found is not None and found is not self.mine.get(device)


def _allow_growth_calls(mine: dict[Any, Any]) -> None:
    context = eager_context()
    table = getattr(context, "_virtual_device_map", None)
    if not mine or type(table) is not dict:
        return
    found = _Configured(table)
    found.mine = mine
    context._virtual_device_map = found
