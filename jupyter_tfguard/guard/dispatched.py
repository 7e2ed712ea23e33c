"""Waits for work that JAX has dispatched: it goes on inside XLA after the cell was stopped, and cannot be cancelled.

Until it has ended, nobody knows whether memory suffices. A message before that could be followed by the kernel's death.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from ..threads import background_thread

_LIMIT_SECONDS = 20.0
STILL_RUNS = (
    "Work that the cell gave to JAX still runs, cannot be cancelled and may need more memory: "
    "save what you need soon."
)


def wait_for_jax(limit_seconds: float = _LIMIT_SECONDS) -> bool:
    """Wait until all arrays of JAX have their values; True if they have, or if JAX is not imported.

    Args:
        limit_seconds: How long to wait.
    """
    arrays = getattr(sys.modules.get("jax"), "live_arrays", None)
    if arrays is None:
        return True
    # A thread, because the wait for one array has no time limit.
    waiting = background_thread(lambda: _wait(arrays()), "tfguard-jax")
    waiting.start()
    waiting.join(limit_seconds)
    return not waiting.is_alive()


def _wait(arrays: list[Any]) -> None:
    for one in arrays:
        with contextlib.suppress(Exception):  # deleted meanwhile, or its computation failed
            one.block_until_ready()
