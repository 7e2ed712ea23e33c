"""Memory that a fit can still use, and the limit that binds."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import SourceUnavailable, TfGuardError
from ..levels import Levels
from ..memory.available import binding_now
from ..memory.limits import Limit, LimitKind
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
            found = binding_now()
        except SourceUnavailable as absent:
            raise CannotEstimate(f"The available memory is unknown. {absent}") from absent
        cap_bytes = Levels.of(found.smallest_bytes).stop_cap_bytes
        return cls(max(0, found.left_bytes - cap_bytes), found.limit)

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
        return cls(found.gpu_limit_bytes, Limit(total, LimitKind.GPU))
