"""The data of ``%tfguard panel`` for :mod:`~.report.live`, taken from existing samples and the recording.

The kernel takes no samples while native code holds the GIL. GPU data comes only from TensorFlow's allocators.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol

from ...errors import TfGuardError
from ...memory.limits import Limit, binding_limit, memory_in_use
from ...metrics import Sample
from ...record.contents import read_recording
from ...record.recording import Recording
from ...record.series import StretchSummary
from ...report import live as shown
from ...watch.live.forecast import Forecast, Forecaster
from ...watch.live.live import Live, LiveReader
from ..capture.memory import KernelMemory
from ..capture.pulse import Pulse
from ..cells.cells import CellRecorder

HISTORY_SECONDS = 300.0
_FREE = ("cgroup.reclaimable_bytes", "host.available_bytes")


class Guarded(Protocol):
    """The attributes of a :class:`~.session.GuardSession` that a panel reads."""

    recording: Recording | None
    pulse: Pulse | None
    memory: KernelMemory
    cells: CellRecorder

    def guard_state(self) -> dict[str, Any]:
        """What the header of the recording says about the guard."""


class PanelState:
    """Reads the current state of a kernel from inside it. Thread-safe.

    Args:
        session: The guard of the kernel.
    """

    def __init__(self, session: Guarded) -> None:
        self._session = session
        self._reader: LiveReader | None = None
        self._forecaster = Forecaster(time.monotonic())
        self._lock = threading.Lock()

    def sampled(self, sample: Sample) -> None:
        """Take a sample. Samples taken while a cell runs feed the forecast of when the limit is reached."""
        if self._session.cells.is_running and "process.rss_bytes" in sample.values:
            values = {**sample.values, **self._session.memory.ulimits()}
            self._forecaster.take(sample.monotonic, values, binding_limit(values))

    def now(self) -> dict[str, Any]:
        """``PanelState`` of the widget; unknown values are None."""
        session = self._session
        live = self._live()
        header = live.header or {}
        return {
            "time": time.time(),
            "notebook": _name(header.get("notebook_path")),
            "busy": session.cells.is_running,
            **shown.kernel(live, self._sample(), self._forecast()),
            "gpu": [shown.tensors(memory) for memory in live.gpu_memory],
            "guard": shown.guard(session.guard_state()),
        }

    def history(self) -> list[list[float | int | None]]:
        """``[time, bytes in use]`` of the last 5 minutes, oldest first; the maximum of each second."""
        recording = self._session.recording
        if recording is None:
            return []
        limit = binding_limit(shown.fresh(self._sample()))
        try:
            found = read_recording(recording.folder.path)
        except TfGuardError:
            return []
        oldest = time.time() - HISTORY_SECONDS
        rows: list[list[float | int | None]] = [
            [round(one.time, 3), _highest_in_use(limit, one)]
            for one in found.seconds
            if one.time >= oldest
        ]
        last = rows[-1][0] if rows else None
        rows += [
            [round(one.time, 3), shown.whole(memory_in_use(limit, one.values))]
            for one in found.samples
            if one.time >= (oldest if last is None else last + 0.001)
        ]
        return rows

    def close(self) -> None:
        """Close the descriptor of the recording's folder."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _live(self) -> Live:
        """The live state from the recording; empty without a recording."""
        recording = self._session.recording
        if recording is None:
            return Live()
        with self._lock:
            if self._reader is None:
                self._reader = LiveReader(recording.folder.path)
            return self._reader.read()

    def _sample(self) -> Sample | None:
        """The kernel's newest sample with the limits of the process; None before the first."""
        pulse = self._session.pulse
        sample = pulse.latest if pulse is not None else None
        if sample is None:
            return None
        return sample._replace(values={**sample.values, **self._session.memory.ulimits()})

    def _forecast(self) -> Forecast | None:
        return self._forecaster.now() if self._session.cells.is_running else None


def _highest_in_use(limit: Limit | None, second: StretchSummary) -> int | None:
    """Peak use within a second: the maximum of each metric, but the minimum of free and reclaimable memory."""
    lowest = {name: second.minimum[name] for name in _FREE if name in second.minimum}
    return shown.whole(memory_in_use(limit, {**second.maximum, **lowest}))


def _name(path: object) -> str | None:
    """The last part of a notebook's path; None if the front end gave a folder or a session id."""
    name = str(path or "").replace("\\", "/").rpartition("/")[2]
    return name[: shown.TEXT_LIMIT] if "." in name else None
