"""Reads what a running kernel reports in its recording: guard state, training progress, marks. Cheap enough for 2 Hz.

The content is not trusted: the user's notebook can write anything there. All values are checked for type and size.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...decode import decode, json_object, number_of
from ...errors import FolderUnusable
from ...private_files import PrivateFolder
from ...record.events import LOOP, GpuOom, MemoryGrowth, MemoryStopped, event_of
from ...record.fit_progress import RecordedProgress
from ...record.journal import EventReader
from ...record.marks import MarkReader
from ...record.newest import newest_gpu_memory, newest_progress
from ...record.recording import EVENTS, GPU_MEMORY, HEADER, PROGRESS
from ...record.tail import RecordTail
from .live_cells import CellReader, GpuReader, OutOfMemoryReader, Resident

MARK_LIMIT = 20
MARK_SECONDS = 600.0
_HEADER_LIMIT_BYTES = 64 * 1024
_RING_LIMIT_BYTES = 1024 * 1024
_TEXT_LIMIT = 200
_READ_EVERY_SECONDS = 0.45
_KINDS = ("fit", "evaluate", "predict", LOOP)


class FitPlace(NamedTuple):
    """Where a run of ``fit``, ``evaluate`` or ``predict`` is, as in ``FitProgress``; changes when a step begins or ends."""

    fit_id: int
    steps_begun: int
    validation_step: int | None
    in_step: bool

    @property
    def is_first(self) -> bool:
        """True until the first step has ended: it also traces and compiles the model."""
        return self.steps_begun <= 1 and self.validation_step is None


@dataclass(frozen=True)
class Live:
    """The newest state.

    Attributes:
        header: The recording's header; None until it exists.
        training: In the panel's format (``Training``); None before the first training.
        place: Where the running fit is; None if none runs, and for a loop.
        marks: ``{"time", "label"}`` of the last 10 minutes, oldest first, at most 20.
        cells: Memory of cells in the panel's format, largest growth first, at most 5, including the running cell.
        gpu_oom: ``{"time", "execution_count", "lines"}`` of the latest GPU OOM that left the kernel alive.
        memory_stop: The same for the latest cell that the guard stopped because memory was nearly full.
        memory_growth: The same for the latest alarm about steadily growing memory.
        gpu_memory: What TensorFlow reports about its GPU devices: ``{"device", "in_use_bytes", "peak_bytes",
            "limit_bytes", "bus_id"}``; empty before it created one.
    """

    header: dict[str, Any] | None = None
    training: dict[str, Any] | None = None
    marks: tuple[dict[str, Any], ...] = ()
    cells: tuple[dict[str, Any], ...] = ()
    gpu_oom: dict[str, Any] | None = None
    memory_stop: dict[str, Any] | None = None
    memory_growth: dict[str, Any] | None = None
    gpu_memory: tuple[dict[str, Any], ...] = ()
    place: FitPlace | None = None

    @property
    def runs_cell(self) -> bool:
        """True if the kernel reports a running cell.

        The server's state is less reliable: it also follows the "idle" of a subshell that JupyterLab opens for a
        widget.
        """
        return any(cell["running"] for cell in self.cells)


@dataclass
class LiveReader:
    """Reads one recording repeatedly, each time only what is new.

    Args:
        path: Folder of the recording; may not exist yet.
    """

    path: Path
    _folder: PrivateFolder | None = None
    _header: dict[str, Any] | None = None
    _header_stamp: tuple[int, int] | None = None
    _event_records: RecordTail = field(
        default_factory=lambda: RecordTail(EVENTS, _RING_LIMIT_BYTES)
    )
    _progress_records: RecordTail = field(
        default_factory=lambda: RecordTail(PROGRESS, _RING_LIMIT_BYTES)
    )
    _gpu_records: RecordTail = field(
        default_factory=lambda: RecordTail(GPU_MEMORY, _RING_LIMIT_BYTES)
    )
    _cells: CellReader = field(default_factory=CellReader)
    _gpu: GpuReader = field(default_factory=GpuReader)
    _gpu_oom: OutOfMemoryReader = field(default_factory=lambda: OutOfMemoryReader(GpuOom))
    _stop: OutOfMemoryReader = field(default_factory=lambda: OutOfMemoryReader(MemoryStopped))
    _growth: OutOfMemoryReader = field(default_factory=lambda: OutOfMemoryReader(MemoryGrowth))
    _events: EventReader = field(default_factory=EventReader)
    _marks: MarkReader = field(default_factory=lambda: MarkReader(MARK_LIMIT))
    _training: dict[str, Any] | None = None
    _place: FitPlace | None = None
    _next: float = 0.0
    _last: Live = Live()

    def __post_init__(self) -> None:
        notices = (self._gpu_oom, self._stop, self._growth)
        self._followers = (self._marks, self._cells, self._gpu, *notices)

    def read(self, resident: Resident = (None, None)) -> Live:
        """The newest state; read from disk at most twice a second, unknown if it cannot be read.

        Args:
            resident: Current resident memory of the kernel as measured by the watcher, and its peak.
        """
        now = time.monotonic()
        if now < self._next:
            return self._last
        self._next = now + _READ_EVERY_SECONDS
        if self._folder is None and not self._open():
            return self._last
        assert self._folder is not None
        self._read_header(self._folder)
        if self._header is None:
            return self._last
        for record in self._event_records.read(self._folder):
            event = event_of(self._events.take(record))
            if event is not None:
                for follower in self._followers:
                    follower.take(event)
        self._gpu.take_memory(newest_gpu_memory(self._gpu_records.read(self._folder)))
        progress = newest_progress(self._progress_records.read(self._folder))
        if progress is not None:
            self._training, self._place = training_state(progress), fit_place(progress)
        oldest = time.time() - MARK_SECONDS
        marks = tuple(
            {"time": mark.time, "label": mark.label}
            for mark in self._marks.marks
            if mark.time >= oldest
        )
        self._last = Live(
            self._header,
            self._training,
            marks,
            self._cells.cells(resident),
            self._gpu_oom.latest,
            self._stop.latest,
            self._growth.latest,
            self._gpu.memory,
            self._place,
        )
        return self._last

    def _open(self) -> bool:
        if not self.path.is_dir():
            return False
        try:
            self._folder = PrivateFolder(self.path, make=False)
        except FolderUnusable:
            return False
        return True

    def _read_header(self, folder: PrivateFolder) -> None:
        try:
            found = os.stat(self.path / HEADER, follow_symlinks=False)
        except OSError:
            return
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp == self._header_stamp:
            return
        value = json_object(folder.read(HEADER, _HEADER_LIMIT_BYTES))
        if value is not None:
            self._header, self._header_stamp = value, stamp

    def close(self) -> None:
        """Close the folder's descriptor."""
        self._folder = None


def training_state(progress: dict[str, Any] | None) -> dict[str, Any] | None:
    """The recording's progress as the panel's ``Training``; None without progress."""
    found = decode(RecordedProgress, progress)
    if found is None or found.what not in _KINDS:
        return None
    return {
        "kind": found.what,
        "active": bool(found.active),
        "refused": bool(found.refused),
        # A loop is known by its optimizer only.
        "model_name": found.model_name or (None if found.what == LOOP else "model"),
        "optimizer": found.optimizer,
        "parameter_count": found.parameter_count,
        "batch_size": found.batch_size,
        "epochs": found.epochs,
        "epoch": found.epoch,
        "steps": found.steps,
        "step": found.step,
        "steps_per_second": found.steps_per_second,
        "seconds_left": _seconds_left(found),
        "logs": {
            # JSON has no NaN, but users want to see a loss that became NaN.
            str(name)[:_TEXT_LIMIT]: value
            if number_of(value) is not None
            else str(value)[:_TEXT_LIMIT]
            for name, value in list((found.logs or {}).items())[:20]
            if type(value) in (int, float)
        },
        "started": found.started,
        "ended": found.ended,
    }


def fit_place(progress: dict[str, Any]) -> FitPlace | None:
    """The place that a record of the progress names; None if no fit runs, or if it names none."""
    found = decode(RecordedProgress, progress)
    if found is None or not found.active or found.in_step is None:
        return None
    if found.fit_id is None or found.steps_begun is None:
        return None
    return FitPlace(found.fit_id, found.steps_begun, found.validation_step, found.in_step)


def _seconds_left(found: RecordedProgress) -> float | None:
    speed, steps, step = found.steps_per_second, found.steps, found.step
    if not found.active or not speed or speed <= 0 or not steps or step is None:
        return None
    left = ((found.epochs or 1) - (found.epoch or 1)) * steps + (steps - step + 1)
    return max(0.0, left / speed)
