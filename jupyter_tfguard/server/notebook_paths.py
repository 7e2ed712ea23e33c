"""Finds the notebook of each kernel of this server.

The server's sessions are read every few seconds, sooner for a new kernel. Nothing waits for a session manager that
hangs. An event of the server announces the new name of a file at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jupyter_core.utils import ensure_async

from ..shield import note_problem
from ..watch.monitored import Kernel

_SECONDS = 5.0
_CONTENTS = "https://events.jupyter.org/jupyter_server/contents_service/v1"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Named(Protocol):
    """A kernel that may have a notebook, and the time since when it is known (monotonic seconds)."""

    @property
    def kernel(self) -> Kernel:
        """The kernel whose ``notebook_path`` is set."""

    @property
    def since(self) -> float:
        """Sessions are read more often for a new kernel."""


class NotebookPaths:
    """Fills :attr:`Kernel.notebook_path`.

    Args:
        serverapp: The Jupyter server.
        kernels: Returns the current kernels by their ids.
    """

    def __init__(self, serverapp: Any, kernels: Callable[[], Mapping[str, Named]]) -> None:
        self._app = serverapp
        self._kernels = kernels
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0
        self._renamed: dict[str, str] = {}  # old path by the new one

    def start(self) -> None:
        """Listen to the server's events."""
        with contextlib.suppress(
            Exception
        ):  # a server without this schema: sessions are read anyway
            self._app.event_logger.add_listener(schema_id=_CONTENTS, listener=self._on_contents)

    async def _on_contents(self, logger: Any, schema_id: str, data: dict[str, Any]) -> None:
        old, new = str(data.get("source_path")).strip("/"), str(data.get("path")).strip("/")
        if data.get("action") != "rename" or not old:
            return
        for named in self._kernels().values():
            path = named.kernel.notebook_path
            if path is not None and f"{path}/".startswith(f"{old}/"):  # the notebook, or its folder
                named.kernel.notebook_path = new + path[len(old) :]
                self._renamed[named.kernel.notebook_path] = path

    async def stop(self) -> None:
        """Stop."""
        with contextlib.suppress(Exception):
            self._app.event_logger.remove_listener(listener=self._on_contents)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def poll(self) -> None:
        """Start reading the sessions if they are due; does not wait."""
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
        except Exception as bad:  # unusual session manager, or a kernel was just removed
            note_problem("reading the server's sessions", bad)

    def _take(self, sessions: Any) -> None:
        kernels = self._kernels()
        for session in sessions:
            named = kernels.get(str((session.get("kernel") or {}).get("id")))
            path = session.get("path")
            # JupyterLab creates a session with a random id as path, and sets the notebook's path a moment later.
            if (
                named is not None
                and session.get("type") != "console"
                and not _UUID.fullmatch(path or "")
                and not self._is_old(named, path)
            ):
                named.kernel.notebook_path = path or None

    def _is_old(self, named: Named, path: str | None) -> bool:
        """True while the page has not given the new name to the session."""
        now = named.kernel.notebook_path or ""
        if path is not None and self._renamed.get(now) == path:
            return True
        self._renamed.pop(now, None)
        return False

    def relative(self, path: str | None) -> str | None:
        """The path of a notebook, relative to the server's root folder if it is below; None if it names no notebook."""
        name = os.path.basename(path or "")
        if not path or not name or _UUID.fullmatch(name):
            return None
        root = os.path.abspath(getattr(self._app, "root_dir", "") or "/")
        inside = os.path.relpath(os.path.abspath(path), root)
        return path[:1000] if inside.startswith("..") else inside[:1000]
