"""Refuses a fit that cannot fit into memory, and saves the model if a fit is stopped or a batch system ends the job."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ...guard.batch_signal import BatchSignal, batch_system
from ...guard.checkpoint import BY, CheckpointNotSaved, Position, Saved, save
from ...guard.dispatched import wait_for_jax
from ...guard.error import HostMemoryLimitReached, is_refusal, release_frames
from ...guard.memory_guard import MemoryGuard
from ...guard.release import release_validation
from ...predict.compared import FitMeter
from ...predict.outputs import check_predict
from ...predict.refusal import check_fit, refusal_text
from ...record.events import CheckpointWritten, Emit
from ...shield import shielded
from ...training.fit_hooks import FitHooks
from ...training.plan import FitPlan
from ...training.progress import FitProgress
from ...units import MIB

_FREE_BYTES, _FREE_SECONDS, _POLL_SECONDS = 64 * MIB, 2.0, 0.02


class FitGuard(FitHooks):
    """The guard's hooks around each run.

    Args:
        guard: The memory guard of this kernel.
        emit: Writes an event to the journal.
    """

    def __init__(self, guard: MemoryGuard, emit: Emit) -> None:
        self._guard = guard
        self._emit = emit
        self._in_batch_job = batch_system(os.environ) is not None
        self._signal: BatchSignal | None = None
        self._meter: FitMeter | None = None

    def refusal(self, what: str, plan: FitPlan, model: Any) -> BaseException | None:
        """The exception to raise if the run certainly needs more memory than is available; otherwise None."""
        self._meter = None
        if what == "fit":
            with shielded("comparing a fit with its estimate"):
                self._meter = FitMeter.of(model, plan)
        if not self._guard.is_watching:
            return None
        available, limit = self._guard.available_bytes, self._guard.limit().size_bytes
        text = None
        if what == "fit" and (found := check_fit(model, plan, available, limit)) is not None:
            text = refusal_text(found, model)
        elif what == "predict":
            text = check_predict(model, plan, available, limit)
        return None if text is None else self._guard.refuse(text)

    def begins(self, model: Any, progress: FitProgress) -> None:
        """In a batch job, arrange to save the model if the batch system ends the job."""
        if progress.what != "fit":
            return
        if not self._in_batch_job or not self._guard.is_started:
            return

        def save_now(seconds: float) -> None:
            self._record(save(model, Position.of(progress), Path.cwd(), limit_seconds=seconds))

        with shielded("SIGTERM of a batch system"):
            self._signal = BatchSignal(save_now)
            self._signal.arm()

    def ends(
        self, error: BaseException | None, model: Any, progress: FitProgress
    ) -> BaseException | None:
        """The exception to raise. If the guard stopped the fit or refused it memory, its message says where the model was saved."""
        watching, self._signal = self._signal, None
        if watching is not None:
            with shielded("SIGTERM of a batch system"):
                watching.disarm()
        meter, self._meter = self._meter, None
        if error is None:
            if meter is not None:
                with shielded("comparing a fit with its estimate"):
                    found = meter.ends(model)
                    progress.compared = None if found is None else found.text()
            return None
        raised = self._guard.instead_of(error)
        is_stop = isinstance(raised, HostMemoryLimitReached)
        if is_stop:
            with shielded("freeing the data of a stopped fit"):
                release_validation(model)
        if progress.what == "fit" and (is_stop or self._is_first_refusal(raised)):
            with shielded("checkpoint of a stopped fit"):
                self._save(raised, model, progress)
        return raised

    def _is_first_refusal(self, raised: BaseException) -> bool:
        """False if the cell has caught one before: a search over many models would leave a file of each."""
        guard = self._guard
        return not guard.stops.later and guard.has_refused() and is_refusal(raised)

    def _save(self, raised: BaseException, model: Any, progress: FitProgress) -> None:
        if progress.finished_step is None and not progress.earlier_steps:
            return  # no step has ended: running the code again creates the same model
        release_frames(raised)  # frees the batches of the fit
        wait_for_jax()  # a step that goes on needs memory
        free = self._guard.available_bytes
        until = time.monotonic() + _FREE_SECONDS
        # Worker processes that were ended take a moment to give their memory back.
        while free() < _FREE_BYTES and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        try:
            saved = save(model, Position.of(progress), Path.cwd(), available_bytes=free)
        except CheckpointNotSaved as no:
            text = f"The model was not saved: {no}"
        else:
            text = saved.text()
            self._record(saved)
        if isinstance(raised, HostMemoryLimitReached):
            self._guard.stops.add_line(raised, text)
        else:
            self._guard.stops.later.append(text)

    def _record(self, saved: Saved) -> None:
        """A later report of this kernel names the file."""
        written = saved.path.stat().st_mtime
        self._emit(
            CheckpointWritten(path=str(saved.path), written=written, by=BY, weights_only=False)
        )
