"""What the kernel said of itself up to a moment of the recording, as the panel reads it of a running one."""

from __future__ import annotations

from typing import Any

from ..diagnosis.typed import dict_of, number_of, text_of, whole_of
from ..record.marks import MarkReader
from ..watch.live import MARK_LIMIT, Live, training_state
from ..watch.live_cells import CellReader, GpuReader, Resident
from .tape import Event, Tape

_FIT = ("what", "model_name", "parameter_count", "optimizer", "batch_size", "epochs", "steps")


class LivePlayer:
    """Takes the events as they come.

    Args:
        tape: The recording.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._marks = MarkReader(MARK_LIMIT)
        self._cells = CellReader()
        self._gpu = GpuReader()
        self._fit: dict[str, Any] | None = None
        self._fit_id: object = None
        self._gpu.take_memory(_devices(dict_of(tape.bundle.get("kernel")).get("gpu_memory")))
        self.runs_cell = False

    def take(self, event: Event, when: float, moment: float) -> None:
        """Look at the next event.

        Args:
            event: As it was recorded.
            when: Unix seconds, and `moment` monotonic seconds, at which it happens now.
        """
        now = event | {"t": when, "m": moment}
        for follower in (self._marks, self._cells, self._gpu):
            follower.take(now)
        kind = event.get("kind")
        if kind in ("cell_start", "cell_end"):
            self.runs_cell = kind == "cell_start"
        elif kind == "fit_start":
            self._fit_id = event.get("fit_id")
            self._fit = {name: event.get(name) for name in _FIT} | {"active": True, "started": when}
        elif self._fit is not None and event.get("fit_id") == self._fit_id:
            self._follow_fit(event, when)

    def _follow_fit(self, event: Event, when: float) -> None:
        assert self._fit is not None
        kind = event.get("kind")
        if kind == "fit_ready":
            known = {name: event[name] for name in _FIT if event.get(name) is not None}
            self._fit |= known
        elif kind == "epoch_end":
            # The step within an epoch was not kept, but for that of the end.
            told = {"epoch": event.get("epoch"), "step": None, "logs": event.get("logs")}
            self._fit |= told
        elif kind == "fit_end":
            self._fit |= {"active": False, "ended": when}

    def take_progress(self, progress: dict[str, Any], shift: float) -> None:
        """The last that was recorded of a fit.

        Args:
            shift: Seconds between then and now.
        """
        told = {name: number_of(progress.get(name)) for name in ("started", "ended")}
        times = {name: None if when is None else when + shift for name, when in told.items()}
        self._fit = progress | times

    def live(self, resident: Resident) -> Live:
        """All of it, as of now."""
        if self._tape.header is None:
            return Live()
        return Live(
            self._tape.header,
            training_state(self._fit),
            tuple({"time": mark.time, "label": mark.label} for mark in self._marks.marks),
            self._cells.cells(resident),
            self._gpu.oom,
            self._gpu.memory,
        )


def _devices(told: object) -> list[dict[str, Any]]:
    devices = [dict_of(one) for one in (told if isinstance(told, list) else ())]
    sizes = ("in_use_bytes", "peak_bytes")
    return [
        {"device": name} | {size: whole_of(one.get(size)) for size in sizes}
        for one in devices
        if (name := text_of(one.get("device"))) is not None
    ]
