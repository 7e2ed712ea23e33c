"""Saves the models of a training loop when the guard stops its cell, and says so in the message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...guard.checkpoint import BY
from ...guard.error import release_frames
from ...guard.loop_models import LoopModels
from ...guard.memory_guard import MemoryGuard
from ...record.events import LOOP, CheckpointWritten, Emit
from ...shield import shielded


class LoopSaver:
    """Holds the models that ``tfguard.checkpoint`` was given in the running cell.

    Args:
        guard: The memory guard of this kernel.
        emit: Writes an event to the journal.
    """

    def __init__(self, guard: MemoryGuard, emit: Emit) -> None:
        self._guard = guard
        self._emit = emit
        self._models = LoopModels()

    def keep(self, model: Any, optimizer: Any) -> None:
        """Save this model if the running cell is stopped."""
        if self._guard.is_watching:
            self._models.keep(model, optimizer)

    def cell_begins(self) -> None:
        """Forget the models of the cell before."""
        self._models.clear()

    def before_shown(self, error: BaseException) -> None:
        """Save the models if the guard's message is about to be printed with this error."""
        stop = self._guard.stops.of_cell
        if stop is not None and (ours := stop.printed_in(error)) is not None:
            self._save(ours)

    def after_stop(self, error: BaseException | None) -> None:
        """Save the models that are not saved yet, after the cell has ended with another error."""
        self._save(error or MemoryError())

    def _save(self, error: BaseException) -> None:
        if not self._models:
            return
        release_frames(error)  # frees the batches of the loop
        with shielded("checkpoint of a stopped training loop"):
            for saved in self._models.save_all(Path.cwd(), self._guard.available_bytes):
                text = saved if isinstance(saved, str) else saved.text()
                self._guard.stops.add_line(error, text)
                if not isinstance(saved, str):
                    written = saved.path.stat().st_mtime
                    path = str(saved.path)
                    self._emit(
                        CheckpointWritten(
                            path=path, written=written, by=BY, weights_only=False, what=LOOP
                        )
                    )
