"""Memory that a fit can still use, and the limit that binds."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..collectors.available import AvailableMemory
from ..collectors.memory_group import machine_bytes, memory_groups
from ..errors import SourceUnavailable, TfGuardError
from ..levels import Levels
from ..limits import CONTAINER_LIMIT, GPU_MEMORY, MACHINE_MEMORY, Limit
from .reusable import gpu_pool_bytes
from .trial import Trial


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
            groups = memory_groups(os.getpid())
        except SourceUnavailable:
            groups = ()
        try:
            memory = AvailableMemory(groups)
            available, total = memory.read(), memory.total_bytes()
            memory.close()
            name = CONTAINER_LIMIT if total < machine_bytes() else MACHINE_MEMORY
        except SourceUnavailable as absent:
            raise CannotEstimate(f"The available memory is unknown. {absent}") from absent
        if available is None:
            raise CannotEstimate(
                "The available memory is unknown: /proc/meminfo has no MemAvailable."
            )
        return cls(max(0, available - Levels.of(total).stop_cap_bytes), Limit(total, name))

    @classmethod
    def on_gpu(cls, found: Trial) -> Room:
        """What this process can still allocate on its first GPU, as the child of this trial saw it.

        Raises:
            CannotEstimate: The child did not come so far.
        """
        if found.gpu_limit_bytes is None:
            raise CannotEstimate(
                f"The trial with batch_size={found.batch_size} {found.ending_text()}. How much memory the GPU has left "
                "is unknown."
            )
        total = found.gpu_limit_bytes + gpu_pool_bytes()
        return cls(found.gpu_limit_bytes, Limit(total, GPU_MEMORY))
