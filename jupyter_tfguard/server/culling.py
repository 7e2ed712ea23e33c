"""Notices which kernels the server's culler shuts down: nobody asked for that end, so it is reported.

The culler calls the same ``shutdown_kernel`` as a user's request, so the call before it is observed.
Source: ``MappingKernelManager.cull_kernel_if_idle`` of Jupyter Server 2.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from ..record.facts import Cull

_METHOD = "cull_kernel_if_idle"


class Culling:
    """Observes the culler of one kernel manager.

    Args:
        kernel_manager: The server's manager of kernels. One without a culler is left as it is.
    """

    def __init__(self, kernel_manager: Any) -> None:
        self._manager = kernel_manager
        self._seen: dict[str, Cull] = {}  # kernels that the culler checks now

    def start(self) -> None:
        """Observe each check of the culler."""
        check = getattr(self._manager, _METHOD, None)
        if check is None:
            return

        async def cull_kernel_if_idle(kernel_id: str) -> None:
            with contextlib.suppress(Exception):  # the culler must run in any case
                self._seen[kernel_id] = self._read(kernel_id)
            try:
                await check(kernel_id)
            finally:
                self._seen.pop(kernel_id, None)

        setattr(self._manager, _METHOD, cull_kernel_if_idle)

    def stop(self) -> None:
        """Undo :meth:`start`."""
        vars(self._manager).pop(_METHOD, None)

    def of(self, kernel_id: str) -> Cull | None:
        """The facts, if the culler is shutting this kernel down; otherwise None."""
        return self._seen.get(kernel_id)

    def _read(self, kernel_id: str) -> Cull:
        kernel = self._manager.get_kernel(kernel_id)
        metadata = kernel.kernel_spec.metadata
        return Cull(
            time=time.time(),
            idle_seconds=time.time() - kernel.last_activity.timestamp(),
            timeout_seconds=float(
                metadata.get("cull_idle_timeout", self._manager.cull_idle_timeout)
            ),
            was_busy=kernel.execution_state == "busy",
        )
