"""The kernels of a replay: those that stand for the recording, each with a player of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from ..diagnosis.typed import dict_of, text_of
from ..server.state import KernelView
from ..shield import shielded
from ..watch.witness import Kernel
from .kernel_name import KERNEL_NAME
from .player import Player
from .tape import Tape

_STEP_SECONDS = 0.05
_AGAIN_SECONDS = 8.0
WAITING = "The replay begins when a page looks."
OVER = "The replay is over. To see it again, start it again, or with --loop."
AGAIN = "The replay is over, and begins again in a moment."

Over = Callable[[Kernel], None]


class _Played:
    def __init__(self, kernel: Kernel, manager: Any) -> None:
        self.kernel = kernel
        self.manager = manager
        self.player: Player | None = None
        self.over_since: float | None = None


class ReplayTracker:
    """Plays the tape for each such kernel, from the moment that somebody looks.

    Args:
        serverapp: The Jupyter server.
        tape: The recording.
        speed, before_seconds: As :class:`~.player.Player`.
        loop: Begin again after the end.
        is_seen: True once a page looks.
        on_over: Called with a kernel whose death is reached; in the event loop.
    """

    def __init__(
        self,
        serverapp: Any,
        tape: Tape,
        *,
        speed: float,
        before_seconds: float,
        loop: bool,
        is_seen: Callable[[], bool],
        on_over: Over,
    ) -> None:
        self._app = serverapp
        self._tape = tape
        self._speed, self._before_seconds, self._loop = speed, before_seconds, loop
        self._is_seen = is_seen
        self._on_over = on_over
        self._played: dict[str, _Played] = {}
        self._seen = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; to be called on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            with shielded("playing a recording"):
                self._find()
                self._seen = self._seen or self._is_seen()
                for played in self._played.values():
                    self._play(played)
            await asyncio.sleep(_STEP_SECONDS)

    def _find(self) -> None:
        manager = self._app.kernel_manager
        ids = set(manager.list_kernel_ids())
        for kernel_id in self._played.keys() - ids:
            del self._played[kernel_id]
        for kernel_id in ids - self._played.keys():
            found = manager.get_kernel(kernel_id)
            if getattr(found, "kernel_name", None) == KERNEL_NAME:
                name = text_of(dict_of(self._tape.bundle.get("identity")).get("kernel_name"))
                kernel = Kernel(kernel_id, name, self._tape.notebook)
                self._played[kernel_id] = _Played(kernel, found)

    def _play(self, played: _Played) -> None:
        now = time.monotonic()
        if played.over_since is not None:
            if not self._loop or now - played.over_since < _AGAIN_SECONDS:
                return
            played.player = played.over_since = None
        if played.player is None:
            played.player = Player(
                self._tape, played.kernel, self._speed, self._before_seconds, now
            )
        if not self._seen:
            played.player.hold(now)
            return
        played.player.advance(now)
        if played.player.is_over:
            played.over_since = now
            self._on_over(played.kernel)

    def kill(self, kernel: Kernel) -> None:
        """End the kernel that stands for the recorded one, as that one ended."""
        played = self._played.get(kernel.kernel_id)
        pid = getattr(getattr(played and played.manager, "provisioner", None), "pid", None)
        if isinstance(pid, int) and pid > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- for the panel -------------------------------------------------------------------------------------------

    @property
    def has_kernels(self) -> bool:
        """True once a kernel stands for the recording."""
        return bool(self._played)

    def player(self, kernel_id: str | None) -> Player | None:
        """The one that plays for this kernel, or for any; None while none does."""
        known = [p for i, p in self._played.items() if kernel_id in (i, None)]
        return next((p.player for p in known if p.player is not None), None)

    def views(self) -> list[KernelView]:
        """All kernels that stand for the recording."""
        self._find()
        return [self._view(played) for played in self._played.values()]

    def view(self, kernel_id: str) -> KernelView | None:
        """One of them."""
        played = self._played.get(kernel_id)
        return self._view(played) if played is not None else None

    def _view(self, played: _Played) -> KernelView:
        player = played.player if self._seen and played.over_since is None else None
        over = AGAIN if self._loop else OVER
        return KernelView(
            kernel=played.kernel,
            execution_state="busy" if player is not None and player.runs_cell else "idle",
            language="python",
            witness=player.witness if player is not None else None,
            unwatched_reason=over if self._seen else WAITING,
        )
