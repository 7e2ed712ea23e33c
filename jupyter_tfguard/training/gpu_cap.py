"""A cap on the GPU memory of this kernel, so that two notebooks can share a card: only when the option asks for it.

One call per GPU, right after the user's own import of TensorFlow and before it has made its devices. Whatever the user
configures, before or later, counts instead.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .gpu_settings import eager_context, gpus_initialised

_MIB = 1024 * 1024


class GpuCap:
    """Caps each GPU that TensorFlow is to use.

    Args:
        limit_mib: MiB per GPU; None for no cap, and then nothing is ever called.
    """

    def __init__(self, limit_mib: int | None) -> None:
        self._limit_mib = limit_mib
        self._configured: dict[Any, Any] = {}  # logical devices by GPU; known by their identity
        self.came_late = False

    @property
    def limit_bytes(self) -> int | None:
        """The cap, once it was set."""
        return self._limit_mib * _MIB if self._limit_mib is not None and self._configured else None

    @property
    def configured(self) -> frozenset[int]:
        """The logical devices that were configured here, by their identity."""
        return frozenset(map(id, self._configured.values()))

    def apply(self, tensorflow: ModuleType) -> None:
        """Set the cap once.

        Raises:
            Exception: Whatever TensorFlow raises; it goes on without a cap then.
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
                    continue  # the user's own
                logical = [config.LogicalDeviceConfiguration(memory_limit=self._limit_mib)]
                config.set_logical_device_configuration(gpu, logical)
                self._configured[gpu] = logical
        finally:
            _let_growth_be_called(self._configured)


class _Configured(dict[Any, Any]):
    """TensorFlow's table of logical devices, in which those of the cap do not count as the user's.

    ``set_memory_growth`` raises for a GPU that is in this table, and asks it with ``in``; everything else asks for the
    value. A notebook that calls it, as most do, must run on as it did before the option was set.
    """

    mine: dict[Any, Any]

    def __contains__(self, device: object) -> bool:
        found = self.get(device)
        return found is not None and found is not self.mine.get(device)


def _let_growth_be_called(mine: dict[Any, Any]) -> None:
    context = eager_context()
    table = getattr(context, "_virtual_device_map", None)
    if not mine or type(table) is not dict:
        return
    found = _Configured(table)
    found.mine = mine
    context._virtual_device_map = found
