"""A started and armed native guard, for the programs with which the gate is tested."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

from jupyter_tfguard.guard import native
from jupyter_tfguard.guard.native import NativeGuard
from jupyter_tfguard.levels import Levels
from jupyter_tfguard.memory.groups import memory_groups

SIGNAL = signal.SIGRTMIN + 9


class Stopped(MemoryError):
    """The sampler stopped the cell."""


class Gate:
    """A started and armed native guard."""

    def __init__(
        self, disk_folder: str | None = None, parts: tuple[str, ...] = native.PARTS
    ) -> None:
        self.native = NativeGuard.load(memory_groups(os.getpid()))
        signal.signal(SIGNAL, self._on_signal)
        self.native.start(SIGNAL)
        self.parts = self.native.gate(parts, disk_folder)
        self.seen: dict[str, Any] = {}

    def _on_signal(self, number: int, frame: object) -> None:
        seen = self.native.snapshot()
        if seen.tripped and not seen.delivered:
            self.native.delivered()
            raise Stopped

    @contextlib.contextmanager
    def cell(self, **levels: float) -> Iterator[dict[str, Any]]:
        """The guard is armed, with these levels changed; what it saw and the error are in the dictionary afterwards."""
        seen: dict[str, Any] = {"error": None}
        total, left = self.native.total_bytes(), self.native.available_bytes()
        self.native.arm(Levels.of(total).for_cell(left)._replace(**levels))
        try:
            yield seen
        except Exception as error:
            seen["error"], seen["text"] = type(error).__name__, str(error)[:200]
        finally:
            found = self.native.snapshot()
            self.native.disarm()
            seen |= {name: value for name, value in found._asdict().items() if name != "error"}
