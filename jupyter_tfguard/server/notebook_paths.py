"""To which notebook each kernel of this server belongs.

The server's sessions are read every few seconds, sooner for a new kernel. Nothing waits for sessions that do not answer.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jupyter_core.utils import ensure_async

from ..shield import note_problem
from ..watch.monitored import Kernel

_SECONDS = 5.0
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Named(Protocol):
    """A kernel that may have a notebook, and since when it is known (monotonic seconds)."""

    @property
    def kernel(self) -> Kernel:
        """Its ``notebook_path`` is filled."""

    @property
    def since(self) -> float:
        """A young one is asked about more often."""


class NotebookPaths:
    """Fills :attr:`Kernel.notebook_path`.

    Args:
        serverapp: The Jupyter server.
        kernels: The kernels of now, by their ids.
    """

    def __init__(self, serverapp: Any, kernels: Callable[[], Mapping[str, Named]]) -> None:
        self._app = serverapp
        self._kernels = kernels
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def look(self) -> None:
        """Ask for the sessions, if it is time to; does not wait for them."""
        kernels, now = self._kernels(), time.monotonic()
        young = any(
            k.kernel.notebook_path is None and now - k.since < 2 * _SECONDS
            for k in kernels.values()
        )
        if not kernels or (now < self._next and not young):
            return
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        self._next = time.monotonic() + _SECONDS
        try:
            sessions = await ensure_async(self._app.session_manager.list_sessions())
            self._take(sessions)
        except Exception as bad:  # another session manager, or a kernel that left in between
            note_problem("reading the server's sessions", bad)

    def _take(self, sessions: Any) -> None:
        kernels = self._kernels()
        for session in sessions:
            named = kernels.get(str((session.get("kernel") or {}).get("id")))
            path = session.get("path")
            # JupyterLab makes a session under a random id, and gives it the notebook's path a moment later.
            if (
                named is not None
                and session.get("type") != "console"
                and not _UUID.fullmatch(path or "")
            ):
                named.kernel.notebook_path = path or None

    def claimed(self, header: dict[str, Any] | None) -> str | None:
        """The notebook's path as its kernel tells it, relative to the server's folder as people see it."""
        claimed = (header or {}).get("notebook_path")
        if (
            not isinstance(claimed, str)
            or not claimed
            or _UUID.fullmatch(os.path.basename(claimed))
        ):
            return None
        root = os.path.abspath(getattr(self._app, "root_dir", "") or "/")
        inside = os.path.relpath(os.path.abspath(claimed), root)
        return claimed[:1000] if inside.startswith("..") else inside[:1000]
