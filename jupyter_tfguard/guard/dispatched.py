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
    """Wait until all arrays of JAX have their values; True if they have, or if JAX was not used.

    Args:
        limit_seconds: How long to wait.
    """
    arrays = getattr(sys.modules.get("jax"), "live_arrays", None)
    # Before the first use of a device, the call would open one. Source: jax 0.4 to 0.10.
    is_used = bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))
    if arrays is None or not is_used:
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
